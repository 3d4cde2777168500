package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.codegen.cuda.ScatterKernel.Deposit;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.Shapes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Ops that a mask steers. How many elements it names before each is counted first. */
final class MaskedOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.of(
          "aten::masked_scatter", MaskedOps::scatter,
          "aten::masked_scatter_backward", MaskedOps::scatterBackward,
          "aten::_unsafe_masked_index", MaskedOps::index,
          "aten::_unsafe_masked_index_put_accumulate", MaskedOps::put);

  private MaskedOps() {}

  /** How many elements a mask names up to each, itself included, in row-major order. */
  private static TensorRef counts(PositionOps op, TensorRef mask, ImmutableLongArray sizes) {
    var named = op.scratch.take(TensorType.contiguous(DType.I64, sizes));
    op.copy(Moves.expand(mask, sizes), named);
    long count = named.type().numel();
    var sums = op.scratch.take(TensorType.contiguous(DType.I64, count));
    if (count > 0) {
      op.call(
          "aten::cumsum",
          List.of(
              new Operand.Tensor(named.with(sums.type())),
              new Operand.Constant(new Arg.Int(0)),
              new Operand.Constant(Arg.None.NONE)),
          sums);
    }
    return sums;
  }

  private static void scatter(PositionOps op) {
    var result = op.arguments.result();
    var sizes = result.type().sizes();
    var mask = op.arguments.tensor("mask");
    var source = op.arguments.tensor("source");
    var counts = counts(op, mask, sizes);
    var kernel = op.kernel(sizes);
    var self = Moves.expand(op.arguments.tensor("self"), sizes);
    kernel.line(
        "const bool named = %s != 0;"
            .formatted(kernel.value(Moves.expand(mask, sizes), kernel.indices())));
    kernel.line(
        "const long long at = named ? %s - 1 : 0;".formatted(kernel.value(counts, List.of("i"))));
    kernel.line("if (named && at >= %s) {\n  __trap();\n}".formatted(source.type().numel()));
    var from = ArrangedOps.unravel(kernel, "at", source);
    kernel.line(
        "%s = named ? %s : %s;"
            .formatted(
                kernel.bits(result, kernel.indices()),
                kernel.bits(source, from),
                kernel.bits(self, kernel.indices())));
    op.launch(kernel, sizes);
  }

  private static void scatterBackward(PositionOps op) {
    var result = op.arguments.result();
    var grad = op.arguments.tensor("grad_output");
    var mask = op.arguments.tensor("mask");
    var sizes = Shapes.broadcast(List.of(grad.type(), mask.type()));
    var counts = counts(op, mask, sizes);
    op.fill(result, 0);
    var kernel = op.kernel(sizes);
    kernel.line(
        "if (%s == 0) {\n  continue;\n}"
            .formatted(kernel.value(Moves.expand(mask, sizes), kernel.indices())));
    kernel.line("const long long at = %s - 1;".formatted(kernel.value(counts, List.of("i"))));
    kernel.line("if (at >= %s) {\n  __trap();\n}".formatted(result.type().numel()));
    var to = ArrangedOps.unravel(kernel, "at", result);
    kernel.line(
        "%s = %s;"
            .formatted(
                kernel.bits(result, to), kernel.bits(Moves.expand(grad, sizes), kernel.indices())));
    op.launch(kernel, sizes);
  }

  /** Where the mask is false, an index may be anything: it is brought into its range. */
  private static Indexing inRange(PositionOps op, TensorRef self) {
    var indices = new ArrayList<Optional<TensorRef>>();
    for (var given : op.arguments.tensors("indices")) {
      long size = self.type().size(indices.size());
      indices.add(given.map(index -> clamped(op, index, size)));
    }
    return Indexing.of(self.type(), indices);
  }

  private static TensorRef clamped(PositionOps op, TensorRef index, long size) {
    var clamped = op.scratch.take(index.type().contiguous().withDType(DType.I64));
    var kernel = op.kernel(index.type().sizes());
    kernel.line("const long long at = %s;".formatted(kernel.value(index, kernel.indices())));
    kernel.set(
        clamped,
        kernel.indices(),
        "at < -%1$s ? -%1$s : at >= %1$s ? %2$s : at".formatted(size, Math.max(-size, size - 1)));
    op.launch(kernel, index.type().sizes());
    return clamped;
  }

  private static void index(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    op.arguments.checkComputes(result);
    var indexing = inRange(op, self);
    var mask = Moves.expand(op.arguments.tensor("mask"), result.type().sizes());
    var kernel = op.kernel(result.type().sizes());
    indexing.read(kernel, kernel.indices());
    op.moveOrSet(
        kernel,
        "%s != 0".formatted(kernel.value(mask, kernel.indices())),
        self,
        indexing.indices(kernel.indices()),
        op.arguments.number("fill"));
  }

  private static void put(PositionOps op) {
    var self = op.arguments.tensor("self");
    var indexing = inRange(op, self);
    var sizes = indexing.sizes();
    var values = Moves.expand(op.arguments.tensor("values"), sizes);
    op.arguments.checkComputes(values);
    var mask = Moves.expand(op.arguments.tensor("mask"), sizes);
    var kept = op.scratch.take(TensorType.contiguous(values.type().dtype(), sizes));
    var kernel = op.kernel(sizes);
    kernel.set(
        kept,
        kernel.indices(),
        "%s != 0 ? %s : 0"
            .formatted(
                kernel.value(mask, kernel.indices()), kernel.value(values, kernel.indices())));
    op.launch(kernel, sizes);
    IndexedOps.deposit(
        op,
        new Deposit(
            Optional.of(self), indexing, kept, op.arguments.result(), true, Optional.empty()));
  }
}
