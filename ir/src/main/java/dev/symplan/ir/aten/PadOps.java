package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Padding with elements of the tensor itself: reflection, replication and circular. */
final class PadOps {
  private static final ImmutableList<String> MODES =
      ImmutableList.of("constant", "reflect", "replicate", "circular");

  private static final int MAX_DIMS = 3;

  private PadOps() {}

  static Stream<OpSpec> all() {
    return IntStream.rangeClosed(1, MAX_DIMS).boxed().flatMap(PadOps::ofDims);
  }

  private static Stream<OpSpec> ofDims(int dims) {
    return Stream.of("reflection", "replication").flatMap(mode -> both(dims, mode));
  }

  private static Stream<OpSpec> both(int dims, String mode) {
    var name = "aten::%s_pad%sd".formatted(mode, dims);
    boolean reflects = mode.equals("reflection");
    return Stream.concat(
        Table.single(
            "%s(Tensor self, SymInt[%s] padding) -> Tensor".formatted(name, 2 * dims),
            call -> {
              checkRank(call.tensor("self"), dims);
              checkLength(call, dims);
              return padded(call, "padding", reflects);
            }),
        Table.single(
            "%s_backward(Tensor grad_output, Tensor self, SymInt[%s] padding) -> Tensor"
                .formatted(name, 2 * dims),
            call -> gradient(call, dims, reflects)));
  }

  private static OpResult gradient(OpCall call, int dims, boolean reflects) {
    var self = call.tensor("self");
    checkRank(self, dims);
    checkLength(call, dims);
    var result = (TensorType) padded(call, "padding", reflects).type();
    if (!call.tensor("grad_output").sizes().equals(result.sizes())) {
      throw new OpTypeException(
          "grad_output has the shape %s, but the padded tensor has %s"
              .formatted(
                  Shapes.text(call.tensor("grad_output").sizes()), Shapes.text(result.sizes())));
    }
    return OpResult.fresh(self.dtype(), self.sizes());
  }

  private static void checkLength(OpCall call, int dims) {
    var padding = call.integers("padding");
    if (padding.length() != 2 * dims) {
      throw new OpTypeException(
          "padding is %s, but must be %s numbers".formatted(Shapes.text(padding), 2 * dims));
    }
  }

  static OpResult inMode(OpCall call) {
    var mode = call.string("mode");
    if (!MODES.contains(mode)) {
      throw new OpTypeException(
          "unknown padding mode '%s'".formatted(mode), "modes: " + String.join(", ", MODES));
    }
    if (mode.equals("constant")) {
      return CopyOps.padded(call, "pad");
    }
    var pad = call.integers("pad");
    int dims = pad.length() / 2;
    if (pad.length() % 2 != 0 || dims < 1 || dims > MAX_DIMS) {
      throw new OpTypeException(
          "pad %s must be for 1, 2 or 3 dimensions".formatted(Shapes.text(pad)),
          "give two numbers for each dimension, the last one first");
    }
    var self = call.tensor("self");
    checkRank(self, dims);
    if (mode.equals("circular")) {
      checkCircular(call, self);
    }
    return padded(call, "pad", mode.equals("reflect"));
  }

  private static void checkCircular(OpCall call, TensorType self) {
    var pad = call.integers("pad");
    for (int i = 0; i < pad.length(); i++) {
      int dim = self.rank() - 1 - i / 2;
      // Elements that are cut off at one end do not come back at the other.
      long left = self.size(dim) + Math.min(0, Math.max(pad.get(i ^ 1), -self.size(dim)));
      if (pad.get(i) > left) {
        throw new OpTypeException(
            "pad %s wraps around more than once: dimension %s has only %s"
                .formatted(pad.get(i), dim, Units.count(left, "element")));
      }
    }
  }

  private static void checkRank(TensorType self, int dims) {
    if (self.rank() != dims + 1 && self.rank() != dims + 2) {
      throw new OpTypeException(
          "self must have %s or %s dimensions: %s".formatted(dims + 1, dims + 2, self));
    }
  }

  private static OpResult padded(OpCall call, String param, boolean reflects) {
    var self = call.tensor("self");
    var pad = call.integers(param);
    for (int i = 0; i < pad.length(); i++) {
      int dim = self.rank() - 1 - i / 2;
      if (self.size(dim) == 0) {
        throw new OpTypeException("dimension %s of %s has no elements".formatted(dim, self));
      }
      if (reflects && pad.get(i) >= self.size(dim)) {
        throw new OpTypeException(
            "pad %s must be smaller than size %s of dimension %s, which it reflects"
                .formatted(pad.get(i), self.size(dim), dim));
      }
    }
    var result = CopyOps.padded(call, param);
    if (((TensorType) result.type()).numel() == 0 && self.numel() != 0) {
      throw new OpTypeException("pad %s leaves nothing".formatted(Shapes.text(pad)));
    }
    return result;
  }
}
