package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import java.util.ArrayList;
import java.util.Optional;

/** Ops that sort, search what is sorted, or keep the best of what went by. */
final class OrderedOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.<String, Rule>builder()
          .put("aten::median.dim", OrderedOps::median)
          .put("aten::bucketize.Tensor", op -> search(op, "boundaries"))
          .put("aten::searchsorted.Tensor", op -> search(op, "sorted_sequence"))
          .put("aten::cummax", op -> extremes(op, ">="))
          .put("aten::cummin", op -> extremes(op, "<="))
          .put("aten::logcumsumexp", OrderedOps::sums)
          .buildOrThrow();

  private OrderedOps() {}

  /** Rows that are too long to be sorted by a block each. */
  static void sort(PositionOps op) {
    var self = op.arguments.tensor("self");
    boolean descending =
        op.arguments.flag(op.arguments.hasParam("largest") ? "largest" : "descending");
    int dim = op.arguments.dim("dim", self.type().rank());
    boolean indicesOnly = op.arguments.op().results().size() == 1;
    LongSort.take(
        op,
        self,
        dim,
        descending,
        indicesOnly ? Optional.empty() : op.arguments.result(0),
        op.arguments.result(indicesOnly ? 0 : 1));
  }

  /** The lower of the two in the middle; the first NaN if there is one. */
  private static void median(PositionOps op) {
    var given = op.arguments.tensor("self");
    var self = given.type().rank() == 0 ? Moves.unsqueeze(given, 0) : given;
    int dim = op.arguments.dim("dim", self.type().rank());
    var either = op.arguments.result(0).or(() -> op.arguments.result(1));
    if (either.isEmpty() || self.type().numel() == 0) {
      return;
    }
    var order = LongSort.order(op, self, dim, false);
    long count = self.type().size(dim);
    var sizes = self.type().sizes().toArray();
    sizes[dim] = 1;
    var kernel = op.kernel(ImmutableLongArray.copyOf(sizes));
    kernel.function(order.functions());
    kernel.line("long long at = %s;".formatted(order.at(kernel, "i", "" + (count - 1) / 2, count)));
    var at = IndexedOps.with(kernel.indices(), dim, "at");
    if (self.type().dtype().isFloat()) {
      kernel.line("for (long long place = %s; place >= 0; place--) {".formatted(count - 1));
      kernel.line("  const long long last = %s;".formatted(order.at(kernel, "i", "place", count)));
      kernel.line(
          "  const auto x = %s;"
              .formatted(kernel.value(self, IndexedOps.with(kernel.indices(), dim, "last"))));
      kernel.line("  if (x == x) {\n    break;\n  }");
      kernel.line("  at = last;");
      kernel.line("}");
    }
    for (int i = 0; i < 2; i++) {
      var result = op.arguments.result(i);
      if (result.isPresent()) {
        var own =
            result.get().type().rank() < self.type().rank()
                ? Moves.unsqueeze(result.get(), dim)
                : result.get();
        if (i == 0) {
          kernel.move(own, kernel.indices(), self, at);
        } else {
          kernel.set(own, kernel.indices(), "at");
        }
      }
    }
    op.launch(kernel, ImmutableLongArray.copyOf(sizes));
  }

  private static boolean isRight(PositionOps op) {
    return op.arguments.flag("right")
        || (op.arguments.hasParam("side")
            && op.arguments.operand("side") instanceof Operand.Constant(Arg.Str(String side))
            && side.equals("right"));
  }

  /** Where each value would go among sorted ones: before its equals, or after them. */
  private static void search(PositionOps op, String param) {
    var sorted = op.arguments.tensor(param);
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    op.arguments.checkComputes(sorted);
    op.arguments.checkComputes(self);
    int last = sorted.type().rank() - 1;
    var kernel = op.kernel(result.type().sizes());
    var row = new ArrayList<String>();
    for (int i = 0; i < last; i++) {
      row.add("i" + i);
    }
    row.add("half");
    var place = row;
    if (op.arguments.hasParam("sorter") && op.arguments.has("sorter")) {
      var sorter = op.arguments.tensor("sorter");
      check(op, sorter, sorted.type().size(last));
      place = new ArrayList<>(row);
      place.set(last, kernel.value(sorter, row));
    }
    var type = comparedIn(self.type().dtype(), sorted.type().dtype());
    kernel.line("const %1$s x = (%1$s)%2$s;".formatted(type, kernel.value(self, kernel.indices())));
    kernel.line("long long low = 0, high = %s;".formatted(sorted.type().size(last)));
    kernel.line("while (low < high) {");
    kernel.line("  const long long half = (low + high) / 2;");
    kernel.line("  const %1$s y = (%1$s)%2$s;".formatted(type, kernel.value(sorted, place)));
    kernel.line("  if (%s) {".formatted(isRight(op) ? "!(y > x)" : "!(y >= x || y != y)"));
    kernel.line("    low = half + 1;");
    kernel.line("  } else {");
    kernel.line("    high = half;");
    kernel.line("  }");
    kernel.line("}");
    kernel.set(result, kernel.indices(), "low");
    op.launch(kernel, result.type().sizes());
  }

  /** Integers in 64 bits: a double does not hold all of them. */
  private static String comparedIn(DType a, DType b) {
    return a.isFloat() || b.isFloat()
        ? "double"
        : CTypes.computed(a == DType.U64 || b == DType.U64 ? DType.U64 : DType.I64);
  }

  private static void check(PositionOps op, TensorRef index, long size) {
    var kernel = op.kernel(index.type().sizes());
    IndexedOps.read(kernel, kernel.value(index, kernel.indices()), size);
    op.launch(kernel, index.type().sizes());
  }

  /** A thread for each row. */
  private static Optional<PositionKernel> rows(PositionOps op, TensorRef self) {
    op.arguments.checkComputes(self);
    int dim = op.arguments.dim("dim", self.type().rank());
    var sizes = self.type().sizes().toArray();
    if (self.type().numel() == 0) {
      return Optional.empty();
    }
    sizes[dim] = 1;
    var kernel = op.kernel(ImmutableLongArray.copyOf(sizes));
    kernel.line("for (long long k = 0; k < %s; k++) {".formatted(self.type().size(dim)));
    return Optional.of(kernel);
  }

  /** The last of equal elements counts; a NaN stays. */
  private static void extremes(PositionOps op, String compares) {
    var self = Moves.atLeastVector(op.arguments.tensor("self"));
    int dim = op.arguments.dim("dim", self.type().rank());
    rows(op, self)
        .ifPresent(
            kernel -> {
              var own = IndexedOps.with(kernel.indices(), dim, "k");
              kernel.once("long long at = 0;");
              kernel.line("const auto x = %s;".formatted(kernel.value(self, own)));
              kernel.line(
                  "const auto best = %s;"
                      .formatted(
                          kernel.value(
                              self, IndexedOps.with(kernel.indices(), dim, "(k == 0 ? 0 : at)"))));
              kernel.line("at = k == 0 || x != x || x %s best ? k : at;".formatted(compares));
              var at = IndexedOps.with(kernel.indices(), dim, "at");
              op.arguments
                  .result(0)
                  .map(Moves::atLeastVector)
                  .ifPresent(ref -> kernel.move(ref, own, self, at));
              op.arguments
                  .result(1)
                  .map(Moves::atLeastVector)
                  .ifPresent(ref -> kernel.set(ref, own, "at"));
              finish(op, kernel, self, dim);
            });
  }

  private static void finish(PositionOps op, PositionKernel kernel, TensorRef self, int dim) {
    kernel.line("}");
    var sizes = self.type().sizes().toArray();
    sizes[dim] = 1;
    op.launch(kernel, ImmutableLongArray.copyOf(sizes));
  }

  private static void sums(PositionOps op) {
    var self = Moves.atLeastVector(op.arguments.tensor("self"));
    var result = Moves.atLeastVector(op.arguments.result());
    int dim = op.arguments.dim("dim", self.type().rank());
    if (!self.type().dtype().isFloat()) {
      throw op.arguments.unsupported(
          "%s of %s".formatted(op.arguments.name(), self.type().dtype().shortName()));
    }
    rows(op, self)
        .ifPresent(
            kernel -> {
              var own = IndexedOps.with(kernel.indices(), dim, "k");
              kernel.once("double sum = 0;");
              kernel.line("const double x = (double)%s;".formatted(kernel.value(self, own)));
              kernel.line("const double most = sum > x || sum != sum ? sum : x;");
              kernel.line("const double least = sum > x || sum != sum ? x : sum;");
              kernel.line(
                  "sum = k == 0 || most != most || most - most != 0 ? (k == 0 ? x : least != least"
                      + " ? least : most) : most + log1p(exp(least - most));");
              kernel.set(
                  result,
                  own,
                  "(%s)sum"
                      .formatted(
                          CTypes.computed(
                              result.type().dtype() == DType.F64 ? DType.F64 : DType.F32)));
              finish(op, kernel, self, dim);
            });
  }
}
