package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** Ops that copy elements: whole, repeated, turned, joined or padded. */
final class CopyOps {
  private CopyOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(copies(), joins(), repetitions(), arrangements()).flatMap(specs -> specs);
  }

  private static Stream<OpSpec> copies() {
    return Stream.of(
            Table.single(
                """
                aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
                """,
                call ->
                    OpResult.fresh(
                        Layouts.inFormat(call.tensor("self"), call.arg("memory_format")))),
            Table.single(
                """
                aten::lift_fresh_copy(Tensor self) -> Tensor
                """,
                call -> OpResult.fresh(Layouts.preserved(call.tensor("self")))),
            Table.single(
                """
                aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor
                """,
                call -> {
                  var type = Layouts.inFormat(call.tensor("self"), call.arg("memory_format"));
                  return OpResult.fresh(type.withDType(call.dtype("dtype").orElse(type.dtype())));
                }),
            Table.single(
                """
                prims::device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor
                """,
                call -> OpResult.fresh(Layouts.preserved(call.tensor("a")))),
            Table.single(
                """
                aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
                """,
                call -> {
                  checkSource(call);
                  return OpResult.fresh(Layouts.preserved(call.tensor("self")));
                }),
            Table.single(
                """
                aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
                """,
                call -> {
                  checkSource(call);
                  return ViewOps.whole(call.value("self"));
                },
                OpTrait.SIDE_EFFECT))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> joins() {
    return Stream.of(
            Table.single(
                """
                aten::cat(Tensor[] tensors, int dim=0) -> Tensor
                aten::concat(Tensor[] tensors, int dim=0) -> Tensor
                """,
                CopyOps::joined,
                OpTrait.CONCATENATION,
                OpTrait.ROWWISE),
            Table.single(
                """
                aten::stack(Tensor[] tensors, int dim=0) -> Tensor
                """,
                CopyOps::stacked,
                OpTrait.CONCATENATION))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> repetitions() {
    return Stream.of(
            Table.single(
                """
                aten::repeat(Tensor self, SymInt[] repeats) -> Tensor
                """,
                call -> repeated(call, call.integers("repeats"))),
            Table.single(
                """
                aten::tile(Tensor self, SymInt[] dims) -> Tensor
                """,
                call -> {
                  var dims = call.integers("dims");
                  int missing = Math.max(0, call.tensor("self").rank() - dims.length());
                  return repeated(call, Shapes.join(ones(missing), dims));
                }),
            Table.single(
                """
                aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor
                """,
                CopyOps::interleaved),
            Table.single(
                """
                aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor
                """,
                CopyOps::interleavedByTensor))
        .flatMap(specs -> specs);
  }

  private static OpResult reversed(OpCall call, String operand) {
    var tensor = call.tensor(operand);
    Shapes.mask(call.integers("dims"), tensor.rank(), "dims");
    return OpResult.fresh(Layouts.preserved(tensor));
  }

  private static Stream<OpSpec> arrangements() {
    return Stream.of(
            Table.single(
                """
                aten::flip(Tensor self, int[] dims) -> Tensor
                """,
                call -> reversed(call, "self")),
            Table.single(
                """
                prims::rev(Tensor a, int[] dims) -> Tensor
                """,
                call -> reversed(call, "a")),
            Table.single(
                """
                aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor
                """,
                CopyOps::rolled),
            Table.single(
                """
                aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor
                """,
                call -> padded(call, "pad")),
            Table.single(
                """
                aten::pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor
                """,
                PadOps::inMode),
            Table.single(
                """
                aten::tril(Tensor self, SymInt diagonal=0) -> Tensor
                aten::triu(Tensor self, SymInt diagonal=0) -> Tensor
                """,
                call -> {
                  var self = call.tensor("self");
                  if (self.rank() < 2) {
                    throw new OpTypeException("self must have 2 dimensions or more: " + self);
                  }
                  return OpResult.fresh(self.dtype(), self.sizes());
                }),
            Table.single(
                """
                aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
                """,
                CopyOps::diagonal))
        .flatMap(specs -> specs);
  }

  private static void checkSource(OpCall call) {
    Shapes.checkBroadcastsTo("src", call.tensor("src").sizes(), call.tensor("self").sizes());
  }

  private static ImmutableLongArray ones(int count) {
    var ones = ImmutableLongArray.builder(count);
    for (int i = 0; i < count; i++) {
      ones.add(1);
    }
    return ones.build();
  }

  private static DType promoted(List<Value> tensors) {
    return Promotion.of(tensors.stream().<Arg>map(Arg.Ref::new).toList());
  }

  private static OpResult joined(OpCall call) {
    var tensors = call.values("tensors");
    if (tensors.isEmpty()) {
      throw new OpTypeException("no tensors to join");
    }
    for (var tensor : tensors) {
      if (tensor.tensor().rank() == 0) {
        throw new OpTypeException(
            "'%s' has no dimension to join along".formatted(tensor.name()), "use aten::stack");
      }
    }
    // PyTorch lets tensors of shape [0] pass, whatever the others' shapes are.
    var real = tensors.stream().filter(t -> !isNothing(t.tensor())).toList();
    if (real.isEmpty()) {
      return OpResult.fresh(promoted(tensors), ImmutableLongArray.of(0));
    }
    var first = real.getFirst();
    int dim = call.dim("dim", first.tensor().rank());
    long total = 0;
    for (var tensor : real) {
      checkJoins(first, tensor, dim);
      total += tensor.tensor().size(dim);
    }
    return OpResult.fresh(promoted(tensors), Shapes.with(first.tensor().sizes(), dim, total));
  }

  private static boolean isNothing(TensorType type) {
    return type.rank() == 1 && type.size(0) == 0;
  }

  private static void checkJoins(Value first, Value other, int dim) {
    var a = first.tensor();
    var b = other.tensor();
    if (a.rank() != b.rank()) {
      throw new OpTypeException(
          "'%s' has %s, but '%s' has %s"
              .formatted(first.name(), Units.count(a.rank(), "dimension"), other.name(), b.rank()));
    }
    for (int i = 0; i < a.rank(); i++) {
      if (i != dim && a.size(i) != b.size(i)) {
        throw new OpTypeException(
            "sizes differ at dimension %s: '%s' has %s, '%s' has %s"
                .formatted(i, first.name(), a.size(i), other.name(), b.size(i)),
            "only dimension %s, along which they are joined, may differ".formatted(dim));
      }
    }
  }

  private static OpResult stacked(OpCall call) {
    var tensors = call.values("tensors");
    if (tensors.isEmpty()) {
      throw new OpTypeException("no tensors to stack");
    }
    var first = tensors.getFirst();
    for (var tensor : tensors) {
      if (!tensor.tensor().sizes().equals(first.tensor().sizes())) {
        throw new OpTypeException(
            "'%s' has the shape %s, but '%s' has %s"
                .formatted(
                    first.name(),
                    Shapes.text(first.tensor().sizes()),
                    tensor.name(),
                    Shapes.text(tensor.tensor().sizes())));
      }
    }
    int rank = first.tensor().rank();
    int dim = OpCall.wrapDim(call.integer("dim"), rank + 1, "dim");
    return OpResult.fresh(
        promoted(tensors), Shapes.insert(first.tensor().sizes(), dim, tensors.size()));
  }

  private static OpResult repeated(OpCall call, ImmutableLongArray repeats) {
    var self = call.tensor("self");
    int added = repeats.length() - self.rank();
    if (added < 0) {
      throw new OpTypeException(
          "%s counts %s, but the tensor has %s"
              .formatted(
                  Shapes.text(repeats), Units.count(repeats.length(), "dimension"), self.rank()));
    }
    Shapes.checked(repeats);
    var sizes = ImmutableLongArray.builder(repeats.length());
    for (int i = 0; i < repeats.length(); i++) {
      sizes.add(Shapes.times(repeats.get(i), i < added ? 1 : self.size(i - added)));
    }
    return OpResult.fresh(self.dtype(), sizes.build());
  }

  private static OpResult interleaved(OpCall call) {
    long repeats = call.integer("repeats");
    if (repeats < 0) {
      throw new OpTypeException("repeats is %s, but must not be negative".formatted(repeats));
    }
    var self = call.tensor("self");
    if (!call.has("dim")) {
      return OpResult.fresh(
          self.dtype(), ImmutableLongArray.of(Shapes.times(self.numel(), repeats)));
    }
    int dim = call.dim("dim", self.rank());
    return OpResult.fresh(
        self.dtype(),
        self.rank() == 0
            ? ImmutableLongArray.of(repeats)
            : Shapes.with(self.sizes(), dim, Shapes.times(self.size(dim), repeats)));
  }

  private static OpResult interleavedByTensor(OpCall call) {
    if (!call.has("output_size")) {
      throw new OpTypeException(
          "the shape would depend on the data of repeats", "give output_size");
    }
    var self = call.tensor("self");
    long size = call.integer("output_size");
    if (!call.has("dim")) {
      checkRepeats(call, self.numel());
      return OpResult.fresh(self.dtype(), ImmutableLongArray.of(size));
    }
    if (self.rank() == 0) {
      throw new OpTypeException("dim is given, but self has no dimensions");
    }
    int dim = call.dim("dim", self.rank());
    checkRepeats(call, self.size(dim));
    return OpResult.fresh(self.dtype(), Shapes.with(self.sizes(), dim, size));
  }

  /** One number stands for all. */
  private static void checkRepeats(OpCall call, long count) {
    var repeats = call.tensor("repeats");
    if (repeats.rank() > 1 || (repeats.numel() != 1 && repeats.numel() != count)) {
      throw new OpTypeException(
          "repeats is %s, but there are %s elements to repeat".formatted(repeats, count));
    }
  }

  private static OpResult rolled(OpCall call) {
    var self = call.tensor("self");
    var shifts = call.integers("shifts");
    var dims = call.integers("dims");
    if (shifts.isEmpty()) {
      throw new OpTypeException("needs a shift");
    }
    // Without dims, the tensor rolls as one row.
    if (!(dims.isEmpty() && shifts.length() == 1) && shifts.length() != dims.length()) {
      throw new OpTypeException("%s shifts for %s dims".formatted(shifts.length(), dims.length()));
    }
    for (int i = 0; i < dims.length(); i++) {
      OpCall.wrapDim(dims.get(i), self.rank(), "dims");
    }
    return OpResult.fresh(self.dtype(), self.sizes());
  }

  /** {@code pad} counts from the last dimension: before, after, before, after … */
  static OpResult padded(OpCall call, String param) {
    var self = call.tensor("self");
    var pad = call.integers(param);
    if (pad.length() % 2 != 0 || pad.length() / 2 > self.rank()) {
      throw new OpTypeException(
          "pad %s does not fit %s"
              .formatted(Shapes.text(pad), Units.count(self.rank(), "dimension")),
          "give two numbers for each dimension, the last one first");
    }
    var sizes = self.sizes().toArray();
    for (int i = 0; i < pad.length() / 2; i++) {
      int dim = self.rank() - 1 - i;
      long size = Shapes.sum(ImmutableLongArray.of(sizes[dim], pad.get(2 * i), pad.get(2 * i + 1)));
      if (size < 0) {
        throw new OpTypeException(
            "pad %s leaves dimension %s of size %s with %s"
                .formatted(Shapes.text(pad), dim, sizes[dim], size));
      }
      sizes[dim] = size;
    }
    return OpResult.fresh(self.dtype(), ImmutableLongArray.copyOf(sizes));
  }

  private static OpResult diagonal(OpCall call) {
    var self = call.tensor("self");
    if (self.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions cannot be a diagonal");
    }
    int rank = self.rank() + 1;
    int dim1 = OpCall.wrapDim(call.integer("dim1"), rank, "dim1");
    int dim2 = OpCall.wrapDim(call.integer("dim2"), rank, "dim2");
    if (dim1 == dim2) {
      throw new OpTypeException("dim1 and dim2 both name dimension " + dim1);
    }
    int last = self.rank() - 1;
    long size = self.size(last) + Math.abs(call.integer("offset"));
    var sizes = self.sizes().subArray(0, last);
    sizes = Shapes.insert(sizes, Math.min(dim1, dim2), size);
    return OpResult.fresh(self.dtype(), Shapes.insert(sizes, Math.max(dim1, dim2), size));
  }
}
