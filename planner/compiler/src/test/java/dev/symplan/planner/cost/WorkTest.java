package dev.symplan.planner.cost;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class WorkTest {
  private static RankPlan plan(String inputs, String... lines) {
    var text =
        """
        graph version 1

        graph g(%s) {
          %s
        }
        """
            .formatted(inputs, String.join("\n  ", lines));
    return Compiler.forTarget(Target.HOST)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("work.graph", text)))
        .rankPlans()
        .getFirst();
  }

  /** The work of the step that makes a value. */
  private static Work of(RankPlan plan, String name) {
    for (var step : plan.steps()) {
      var ops =
          switch (step) {
            case Step.Compute(int op) -> ImmutableIntArray.of(op);
            case Step.Fused(var list) -> list;
            case Step.Start _, Step.Join _ -> ImmutableIntArray.of();
          };
      if (ops.asList().stream()
          .flatMap(op -> plan.graph().ops().get(op).results().stream())
          .anyMatch(value -> value.name().equals(name))) {
        return Work.of(plan, ops);
      }
    }
    throw new AssertionError(name);
  }

  @Test
  void aProductReadsItsFactorsOnce() {
    var square = plan("x: bf16[64, 64]", "y = aten::mm(x, x)", "return y");
    assertThat(of(square, "y"))
        .isEqualTo(new Work(2 * 64 * 64 * 2, 2.0 * 64 * 64 * 64, Optional.of(DType.BF16)));
    var two = plan("x: f32[8, 16], w: f32[16, 4]", "y = aten::mm(x, w)", "return y");
    assertThat(of(two, "y"))
        .isEqualTo(
            new Work((8 * 16 + 16 * 4 + 8 * 4) * 4, 2.0 * 8 * 16 * 4, Optional.of(DType.F32)));
  }

  @Test
  void whatAFusedStepPassesOnIsNotMoved() {
    var fused = plan("x: f32[100]", "a = aten::neg(x)", "b = aten::mul.Tensor(a, x)", "return b");
    assertThat(of(fused, "b")).isEqualTo(new Work(2 * 400, 0, Optional.empty()));
  }

  @Test
  void expandedElementsAreReadOnce() {
    var expanded =
        plan(
            "x: f32[1, 100], y: f32[50, 100]",
            "e = aten::expand(x, [50, 100])",
            "z = aten::mul.Tensor(e, y)",
            "return z");
    assertThat(of(expanded, "z").bytes()).isEqualTo(400 + 2 * 50 * 400);
  }

  @Test
  void aGatherReadsTheRowsThatItReturns() {
    var gather =
        plan("table: f32[10000, 64], i: i64[8]", "e = aten::embedding(table, i)", "return e");
    assertThat(of(gather, "e").bytes()).isEqualTo(2 * 8 * 64 * 4 + 8 * 8);
    var all = plan("x: f32[4, 64], i: i64[80]", "e = aten::index_select(x, 0, i)", "return e");
    assertThat(of(all, "e").bytes()).isEqualTo(4 * 64 * 4 + 80 * 64 * 4 + 80 * 8);
  }

  @Test
  void anUpdateInPlaceTouchesWhatItOverwrites() {
    var lines =
        new String[] {
          "a = aten::mm(x, x)", "b = aten::slice_scatter(a, y, 0, 0, 2)", "c = aten::neg(b)"
        };
    var last = plan("x: f32[64, 64], y: f32[2, 64]", lines[0], lines[1], "return b");
    assertThat(last.placement(last.graph().ops().get(0).result()))
        .as("a's memory becomes b's")
        .isEqualTo(last.placement(last.graph().ops().get(1).result()));
    assertThat(of(last, "b").bytes()).isEqualTo(2 * 2 * 64 * 4);
    var copied = plan("x: f32[64, 64], y: f32[2, 64]", lines[0], lines[1], "return a, b");
    assertThat(of(copied, "b").bytes()).isEqualTo((2 * 64 * 64 + 2 * 64) * 4);
  }

  @Test
  void attentionBackwardIsFiveProducts() {
    var inputs = "q: f32[1, 2, 16, 8], k: f32[1, 2, 32, 8], v: f32[1, 2, 32, 8]";
    double product = 2.0 * 2 * 16 * 32 * 8;
    var forward =
        plan(
            inputs,
            "o, l = aten::_scaled_dot_product_flash_attention_for_cpu(q, k, v)",
            "return o, l");
    assertThat(of(forward, "o").flops()).isEqualTo(2 * product);
    var backward =
        plan(
            inputs + ", g: f32[1, 2, 16, 8], o: f32[1, 2, 16, 8], l: f32[1, 2, 16]",
            "dq, dk, dv = aten::_scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, o,"
                + " l, 0.0, False)",
            "return dq, dk, dv");
    assertThat(of(backward, "dq").flops()).isEqualTo(5 * product);
  }

  @Test
  void convolutionsAreAProductForEachImageOrGradient() {
    var windows = "[2, 2], [1, 1], [1, 1], %s, [0, 0], 2, [%s, True]";
    var gradient = "dx, dw, db = aten::convolution_backward(g, x, w, [6], ";
    double product = 2.0 * 3 * 6 * 4 * 4 * 2 * 3 * 3;
    var inputs = "x: f32[3, 4, 8, 8], w: f32[6, 2, 3, 3], g: f32[3, 6, 4, 4]";
    var both =
        plan(
            inputs, gradient + windows.formatted("False", "True, True") + ")", "return dx, dw, db");
    assertThat(of(both, "dx").flops()).isEqualTo(2 * product);
    var second =
        plan(inputs, gradient + windows.formatted("False", "False, True") + ")", "return dw, db");
    assertThat(of(second, "dw").flops()).isEqualTo(product);
    var transposed =
        plan(
            "x: f32[3, 6, 4, 4], w: f32[6, 2, 3, 3]",
            "y = aten::convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 2)",
            "return y");
    assertThat(of(transposed, "y").flops()).isEqualTo(product);
  }
}
