package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Ops that repeat, turn, cut out or enumerate elements; each is moved by its place. */
final class ArrangedOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.<String, Rule>builder()
          .put("aten::repeat", ArrangedOps::repeat)
          .put("aten::tile", ArrangedOps::repeat)
          .put("aten::repeat_interleave.self_int", ArrangedOps::interleave)
          .put("aten::repeat_interleave.self_Tensor", ArrangedOps::interleaveByTensor)
          .put("aten::roll", ArrangedOps::roll)
          .put("aten::take", ArrangedOps::take)
          .put("aten::fill.Scalar", op -> op.fill("value"))
          .put("aten::fill.Tensor", op -> op.fill("value"))
          .put("aten::linspace", ArrangedOps::linspace)
          .put("aten::tril_indices", op -> triangle(op, true))
          .put("aten::triu_indices", op -> triangle(op, false))
          .put("aten::diag_embed", ArrangedOps::embedDiagonal)
          .put("aten::diagonal_scatter", ArrangedOps::scatterDiagonal)
          .put("aten::as_strided_scatter", ArrangedOps::scatterStrided)
          .put("aten::glu", ArrangedOps::gated)
          .put("aten::glu_backward", ArrangedOps::gatedBackward)
          .buildOrThrow();

  private ArrangedOps() {}

  private static void repeat(PositionOps op) {
    var self = op.arguments.tensor("self");
    var kernel = op.kernel(op.arguments.result().type().sizes());
    int added = op.arguments.result().type().rank() - self.type().rank();
    op.move(
        kernel,
        self,
        IntStream.range(0, self.type().rank())
            .mapToObj(dim -> "i%s %% %s".formatted(added + dim, size(self, dim)))
            .toList());
  }

  /** Kernels without elements are compiled, too. */
  private static long size(TensorRef ref, int dim) {
    return Math.max(1, ref.type().size(dim));
  }

  /** Declares the indices of an element by its number in row-major order. */
  static List<String> unravel(PositionKernel kernel, String number, TensorRef ref) {
    kernel.line("long long flat = %s;".formatted(number));
    kernel.line(
        Indices.of("", "[[maybe_unused]] const long long s", "flat", ref.type().sizes())
            .stripTrailing());
    return IntStream.range(0, ref.type().rank()).mapToObj(dim -> "s" + dim).toList();
  }

  private static void interleave(PositionOps op) {
    var self = op.arguments.tensor("self");
    long repeats = Math.max(1, op.arguments.integer("repeats"));
    var kernel = op.kernel(op.arguments.result().type().sizes());
    if (!op.arguments.has("dim") || self.type().rank() == 0) {
      op.move(kernel, self, unravel(kernel, "i0 / " + repeats, self));
      return;
    }
    int dim = op.arguments.dim("dim", self.type().rank());
    var indices = new ArrayList<>(kernel.indices());
    indices.set(dim, "i%s / %s".formatted(dim, repeats));
    op.move(kernel, self, indices);
  }

  /** Each thread looks for the element whose repetitions it is among. */
  private static void interleaveByTensor(PositionOps op) {
    var self = op.arguments.tensor("self");
    var repeats = op.arguments.tensor("repeats");
    var result = op.arguments.result();
    boolean flat = !op.arguments.has("dim") || self.type().rank() == 0;
    int dim = flat ? 0 : op.arguments.dim("dim", self.type().rank());
    long count = flat ? self.type().numel() : self.type().size(dim);
    var kernel = op.kernel(result.type().sizes());
    var number =
        repeats.type().rank() == 0
            ? List.<String>of()
            : List.of(repeats.type().numel() == 1 ? "0" : "j");
    kernel.line("long long at = 0, next = 0;");
    kernel.line("for (long long j = 0; j < %s; j++) {".formatted(count));
    kernel.line("  const long long times = %s;".formatted(kernel.value(repeats, number)));
    kernel.line("  if (times < 0) {\n    __trap();\n  }");
    kernel.line("  at = i%1$s >= next && i%1$s < next + times ? j : at;".formatted(dim));
    kernel.line("  next += times;");
    kernel.line("}");
    kernel.line("if (next != %s) {\n  __trap();\n}".formatted(result.type().size(dim)));
    var indices = new ArrayList<>(kernel.indices());
    indices.set(dim, "at");
    op.move(kernel, self, flat ? unravel(kernel, "at", self) : indices);
  }

  private static void roll(PositionOps op) {
    var self = op.arguments.tensor("self");
    var shifts = op.arguments.integers("shifts");
    var dims = op.arguments.integers("dims");
    int rank = self.type().rank();
    var kernel = op.kernel(op.arguments.result().type().sizes());
    if (dims.isEmpty()) {
      long count = Math.max(1, self.type().numel());
      long shift = shifts.stream().map(each -> Math.floorMod(each, count)).sum() % count;
      op.move(kernel, self, unravel(kernel, rolled("i", shift, count), self));
      return;
    }
    var indices = new ArrayList<>(kernel.indices());
    var sum = new long[Math.max(1, rank)];
    for (int i = 0; i < dims.length(); i++) {
      sum[OpCall.wrapDim(dims.get(i), rank, "dims")] += shifts.get(i);
    }
    for (int dim = 0; dim < rank; dim++) {
      indices.set(
          dim, rolled("i" + dim, Math.floorMod(sum[dim], size(self, dim)), size(self, dim)));
    }
    op.move(kernel, self, indices);
  }

  private static String rolled(String index, long shift, long size) {
    return shift == 0
        ? index
        : "(%1$s >= %2$s ? %1$s - %2$s : %1$s + %3$s)".formatted(index, shift, size - shift);
  }

  private static void take(PositionOps op) {
    var self = op.arguments.tensor("self");
    var index = op.arguments.tensor("index");
    var kernel = op.kernel(op.arguments.result().type().sizes());
    long count = self.type().numel();
    kernel.line("long long at = %s;".formatted(kernel.value(index, kernel.indices())));
    kernel.line("at += at < 0 ? %s : 0;".formatted(count));
    kernel.line("if (at < 0 || at >= %s) {\n  __trap();\n}".formatted(count));
    op.move(kernel, self, unravel(kernel, "at", self));
  }

  /** From both ends to the middle, as PyTorch computes it. */
  private static void linspace(PositionOps op) {
    var result = op.arguments.result();
    op.arguments.checkComputes(result);
    long steps = result.type().numel();
    double start = op.arguments.number("start").doubleValue();
    double end = op.arguments.number("end").doubleValue();
    double step = steps > 1 ? (end - start) / (steps - 1) : 0;
    var kernel = op.kernel(result.type().sizes());
    kernel.set(
        result,
        kernel.indices(),
        "(%s)(i0 < %s ? %s + i0 * %s : %s - (%s - i0) * %s)"
            .formatted(
                CTypes.computed(result.type().dtype()),
                steps == 1 ? 1 : steps / 2,
                Literals.floating(start, true),
                Literals.floating(step, true),
                Literals.floating(end, true),
                steps - 1,
                Literals.floating(step, true)));
    op.launch(kernel, result.type().sizes());
  }

  /** Each thread goes through the rows before its own. */
  private static void triangle(PositionOps op, boolean lower) {
    var result = op.arguments.result();
    long rows = op.arguments.integer("row");
    long columns = op.arguments.integer("col");
    long offset = op.arguments.integer("offset");
    var kernel = op.kernel(ImmutableLongArray.of(result.type().size(1)));
    kernel.line("long long row = 0, column = 0, next = 0;");
    kernel.line("for (; row < %s; row++) {".formatted(rows));
    kernel.line(
        "  const long long edge = row + %s;"
            .formatted(Literals.integer(lower ? offset + 1 : offset)));
    kernel.line(
        "  const long long cut = edge < 0 ? 0 : edge > %1$s ? %1$s : edge;".formatted(columns));
    kernel.line(
        lower
            ? "  const long long begin = 0, end = cut;"
            : "  const long long begin = cut, end = %s;".formatted(columns));
    kernel.line("  if (i0 < next + end - begin) {");
    kernel.line("    column = begin + i0 - next;");
    kernel.line("    break;");
    kernel.line("  }");
    kernel.line("  next += end - begin;");
    kernel.line("}");
    kernel.set(result, List.of("0", "i0"), "row");
    kernel.set(result, List.of("1", "i0"), "column");
    op.launch(kernel, ImmutableLongArray.of(result.type().size(1)));
  }

  /** The diagonal of two dimensions, as a last dimension instead of them. */
  private static TensorRef diagonal(PositionOps op, TensorRef ref) {
    var type = ref.type();
    long offset = op.arguments.integer("offset");
    int dim1 = op.arguments.dim("dim1", type.rank());
    int dim2 = op.arguments.dim("dim2", type.rank());
    long length =
        Math.min(type.size(dim1) + Math.min(0, offset), type.size(dim2) - Math.max(0, offset));
    length = Math.max(0, Math.min(length, Math.min(type.size(dim1), type.size(dim2))));
    long start =
        length == 0 ? 0 : offset >= 0 ? offset * type.stride(dim2) : -offset * type.stride(dim1);
    var sizes = ImmutableLongArray.builder();
    var strides = ImmutableLongArray.builder();
    for (int i = 0; i < type.rank(); i++) {
      if (i != dim1 && i != dim2) {
        sizes.add(type.size(i));
        strides.add(type.stride(i));
      }
    }
    return Moves.strided(
        ref,
        start,
        sizes.add(length).build(),
        strides.add(type.stride(dim1) + type.stride(dim2)).build());
  }

  private static void embedDiagonal(PositionOps op) {
    op.fill(op.arguments.result(), 0);
    op.copy(op.arguments.tensor("self"), diagonal(op, op.arguments.result()));
  }

  private static void scatterDiagonal(PositionOps op) {
    op.copy(op.arguments.tensor("self"), op.arguments.result());
    op.copy(op.arguments.tensor("src"), diagonal(op, op.arguments.result()));
  }

  private static void scatterStrided(PositionOps op) {
    var result = op.arguments.result();
    op.copy(op.arguments.tensor("self"), result);
    op.copy(
        op.arguments.tensor("src"),
        Moves.strided(
            result,
            op.arguments.has("storage_offset") ? op.arguments.integer("storage_offset") : 0,
            op.arguments.integers("size"),
            op.arguments.integers("stride")));
  }

  private static TensorRef half(PositionOps op, TensorRef ref, int which) {
    int dim = op.arguments.dim("dim", ref.type().rank());
    long size = ref.type().size(dim) / 2;
    return Moves.narrow(ref, dim, which * size, size, 1);
  }

  private static String sigmoid(TensorType type, String x) {
    var wide = type.dtype() == DType.F64 ? "double" : "float";
    return "(%1$s(1) / (%1$s(1) + exp(-(%2$s))))".formatted(wide, x);
  }

  private static void gated(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    op.arguments.checkComputes(self);
    var kernel = op.kernel(result.type().sizes());
    var gate = kernel.value(half(op, self, 1), kernel.indices());
    kernel.set(
        result,
        kernel.indices(),
        "%s * %s"
            .formatted(
                kernel.value(half(op, self, 0), kernel.indices()), sigmoid(self.type(), gate)));
    op.launch(kernel, result.type().sizes());
  }

  private static void gatedBackward(PositionOps op) {
    var self = op.arguments.tensor("self");
    var grad = op.arguments.tensor("grad_output");
    var result = op.arguments.result();
    op.arguments.checkComputes(self);
    op.arguments.checkComputes(grad);
    var kernel = op.kernel(grad.type().sizes());
    var indices = kernel.indices();
    var type = CTypes.computed(self.type().dtype());
    kernel.line("const %s dy = %s;".formatted(type, kernel.value(grad, indices)));
    kernel.line(
        "const %s gate = %s;"
            .formatted(type, sigmoid(self.type(), kernel.value(half(op, self, 1), indices))));
    kernel.line("const %s a = %s;".formatted(type, kernel.value(half(op, self, 0), indices)));
    kernel.set(half(op, result, 0), indices, "dy * gate");
    kernel.set(half(op, result, 1), indices, "dy * a * gate * (1 - gate)");
    op.launch(kernel, grad.type().sizes());
  }
}
