package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import java.util.List;
import java.util.stream.IntStream;

/** Ops that count elements: each thread has a bin, and goes through all of them. */
final class CountedOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.of(
          "aten::bincount", CountedOps::count,
          "aten::histc", CountedOps::histogram);

  private CountedOps() {}

  private static void loop(PositionKernel kernel, TensorRef self) {
    kernel.line("for (long long j = 0; j < %s; j++) {".formatted(self.type().numel()));
  }

  private static void count(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    var weights = op.arguments.optionalTensor("weights");
    op.arguments.checkComputes(self);
    weights.ifPresent(op.arguments::checkComputes);
    long bins = result.type().numel();
    var check = op.kernel(self.type().sizes());
    check.line("const long long at = %s;".formatted(check.value(self, check.indices())));
    check.line("if (at < 0 || at >= %s) {\n  __trap();\n}".formatted(bins));
    op.launch(check, self.type().sizes());
    var kernel = op.kernel(result.type().sizes());
    kernel.line("%s sum = 0;".formatted(weights.isPresent() ? "double" : "long long"));
    loop(kernel, self);
    kernel.line("if (%s == i0) {".formatted(kernel.value(self, List.of("j"))));
    kernel.line(
        "  sum += %s;".formatted(weights.map(ref -> kernel.value(ref, List.of("j"))).orElse("1")));
    kernel.line("}\n}");
    kernel.set(
        result, kernel.indices(), "(%s)sum".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }

  private static void histogram(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    op.arguments.checkComputes(self);
    double min = op.arguments.number("min").doubleValue();
    double max = op.arguments.number("max").doubleValue();
    long bins = result.type().numel();
    var kernel = op.kernel(result.type().sizes());
    kernel.line("long long sum = 0;");
    kernel.line(
        "double low = %s, high = %s;"
            .formatted(Literals.floating(min, true), Literals.floating(max, true)));
    if (min == max && self.type().numel() > 0) {
      loop(kernel, self);
      element(kernel, self);
      kernel.line("low = j == 0 || x < low || x != x ? x : low;");
      kernel.line("high = j == 0 || x > high || x != x ? x : high;");
      kernel.line("}");
    }
    if (min == max) {
      kernel.line("if (low == high) {\n  low -= 1;\n  high += 1;\n}");
    }
    kernel.line("if (low - low != 0 || high - high != 0) {\n  __trap();\n}");
    loop(kernel, self);
    element(kernel, self);
    kernel.line("if (x >= low && x <= high) {");
    kernel.line(
        "  const long long bin = (long long)((x - low) * %s / (high - low));".formatted(bins));
    kernel.line("  sum += (bin < %1$s ? bin : %1$s) == i0;".formatted(bins - 1));
    kernel.line("}\n}");
    kernel.set(
        result, kernel.indices(), "(%s)sum".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }

  private static void element(PositionKernel kernel, TensorRef self) {
    kernel.line("long long flat = j;");
    kernel.line(
        Indices.of("", "[[maybe_unused]] const long long s", "flat", self.type().sizes())
            .stripTrailing());
    var indices = IntStream.range(0, self.type().rank()).mapToObj(dim -> "s" + dim).toList();
    kernel.line("const double x = (double)%s;".formatted(kernel.value(self, indices)));
  }
}
