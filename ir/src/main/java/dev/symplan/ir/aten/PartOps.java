package dev.symplan.ir.aten;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.Stream;

/** Ops that replace a part of a tensor, which a view could be of, or give its gradient. */
final class PartOps {
  private PartOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.single(
                """
                aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor
                """,
                call -> replaced(call, slice(call, call.value("self"))),
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor
                """,
                call -> replaced(call, select(call, call.value("self"))),
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
                """,
                call -> replaced(call, ViewOps.diagonal(call, call.value("self"))),
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor
                """,
                PartOps::stridedScattered,
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor
                """,
                call -> gradient(call, PartOps::slice)),
            Table.single(
                """
                aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor
                """,
                call -> gradient(call, PartOps::select)))
        .flatMap(specs -> specs);
  }

  private static OpResult slice(OpCall call, Value of) {
    return Slices.slice(
        of,
        call.dim("dim", of.tensor().rank()),
        optional(call, "start"),
        optional(call, "end"),
        call.integer("step"));
  }

  private static OpResult select(OpCall call, Value of) {
    return Slices.select(of, call.dim("dim", of.tensor().rank()), call.integer("index"));
  }

  private static Optional<Long> optional(OpCall call, String param) {
    return call.has(param) ? Optional.of(call.integer(param)) : Optional.empty();
  }

  /** A copy of self in which {@code src} replaces a part. */
  private static OpResult replaced(OpCall call, OpResult part) {
    checkFits(call, "src", part);
    return OpResult.fresh(Layouts.preserved(call.tensor("self")));
  }

  /** Zeros of the input's shape, with the gradient in the part that was taken. */
  private static OpResult gradient(OpCall call, BiFunction<OpCall, Value, OpResult> taken) {
    var type =
        TensorType.contiguous(
            call.tensor("grad_output").dtype(), Shapes.checked(call.integers("input_sizes")));
    checkFits(
        call, "grad_output", taken.apply(call, new Value(0, "input", type, Span.NONE, false)));
    return OpResult.fresh(type);
  }

  private static void checkFits(OpCall call, String param, OpResult part) {
    var given = call.tensor(param).sizes();
    var sizes = ((TensorType) part.type()).sizes();
    if (!given.equals(sizes)) {
      throw new OpTypeException(
          "%s has the shape %s, but the part has %s"
              .formatted(param, Shapes.text(given), Shapes.text(sizes)));
    }
  }

  private static OpResult stridedScattered(OpCall call) {
    var part = ViewOps.strided(call, call.value("self"));
    var result = replaced(call, part);
    var type = (TensorType) part.type();
    long offset = part.view().orElseThrow().offset() * type.dtype().bytes();
    long bytes = ((TensorType) result.type()).storageBytes();
    if (type.numel() > 0 && offset > bytes - type.storageBytes()) {
      throw new OpTypeException(
          "reaches outside the memory of self, which has %s".formatted(Units.count(bytes, "byte")),
          "takes %s from byte %s on".formatted(Units.count(type.storageBytes(), "byte"), offset));
    }
    return result;
  }
}
