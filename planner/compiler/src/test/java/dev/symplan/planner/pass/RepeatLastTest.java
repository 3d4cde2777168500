package dev.symplan.planner.pass;

import static dev.symplan.planner.pass.StepNames.steps;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

/** Elementwise ops read few elements repeatedly, instead of a view that repeats them. */
class RepeatLastTest {

  /** In the given order, so that only the pass changes kernels. */
  private static final CompileOptions AS_GIVEN =
      CompileOptions.DEFAULT.withRanks(2).withReorderBudget(OptionalDouble.empty());

  private static Plan plan(String... lines) {
    return plan(AS_GIVEN, lines);
  }

  private static Plan plan(CompileOptions options, String... lines) {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(x: f32[512, 1024], y: f32[512, 1024], r: f32[512, 1], n: f32[]) {
          %s
        }
        """
            .formatted(String.join("\n  ", lines));
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  /** The type of a value, or of the one that a kernel computes again. */
  private static String type(Plan plan, String name) {
    return plan.rankPlans().getFirst().graph().values().stream()
        .filter(value -> value.name().equals(name) || value.name().equals(name + "_again"))
        .findFirst()
        .orElseThrow()
        .tensor()
        .toString();
  }

  /** The gradient of a norm: a sum of each row, which its elements are multiplied by. */
  private static final String[] LINES = {
    "p = aten::mul.Tensor(x, y)",
    "s = aten::sum.dim_IntList(p, [1], True)",
    "e = aten::expand(s, [512, 1024])",
    "d = aten::div.Scalar(e, 1024)",
    "m = aten::mul.Tensor(x, 2)",
    "o = aten::mul.Tensor(d, m)",
    "return o"
  };

  @Test
  void aGradientOfANormIsOneKernel() {
    var plan = plan(LINES);
    assertThat(steps(plan)).containsExactly("p s d m o");
    assertThat(type(plan, "d")).isEqualTo("f32[512, 1]");
    assertThat(steps(plan(AS_GIVEN.withFusion(false), LINES)))
        .containsExactly("p", "s", "d", "m", "o");
  }

  @Test
  void whatIsReturnedHasAllElements() {
    var lines = LINES.clone();
    lines[6] = "return o, d";
    assertThat(type(plan(lines), "d")).isEqualTo("f32[512, 1024]");
  }

  @Test
  void whatAViewShowsHasAllElements() {
    var lines = LINES.clone();
    lines[5] = "v = aten::view(d, [1024, 512])\n  w = aten::view(m, [1024, 512])";
    lines[6] = "o = aten::mul.Tensor(v, w)\n  return o";
    assertThat(type(plan(lines), "d")).isEqualTo("f32[512, 1024]");
  }

  @Test
  void aChainIsDoneOnTheFewElements() {
    var plan =
        plan(
            "e = aten::expand(r, [512, 1024])",
            "a = aten::div.Scalar(e, 1024)",
            "b = aten::exp(a)",
            "c = aten::mul.Tensor(b, a)",
            "o = aten::mul.Tensor(c, x)",
            "return o");
    assertThat(type(plan, "c")).isEqualTo("f32[512, 1]");
    assertThat(type(plan, "o")).isEqualTo("f32[512, 1024]");
  }

  /** One that only the caller reads keeps the chain before it as it is. */
  @Test
  void aChainThatEndsWithoutAllElementsStays() {
    var plan =
        plan(
            "e = aten::expand(r, [512, 1024])",
            "a = aten::div.Scalar(e, 1024)",
            "b = aten::exp(a)",
            "return b");
    assertThat(type(plan, "a")).isEqualTo("f32[512, 1024]");
    assertThat(type(plan, "b")).isEqualTo("f32[512, 1024]");
  }

  /** Several rows of results, of which each reader has all the elements by another operand. */
  @Test
  void rowsAndColumnsMeet() {
    var plan =
        plan(
            "i = aten::sum.dim_IntList(x, [0], True)",
            "e = aten::expand(r, [512, 1024])",
            "f = aten::expand(i, [512, 1024])",
            "a = aten::exp(e)",
            "b = aten::exp(f)",
            "c = aten::mul.Tensor(a, x)",
            "o = aten::add.Tensor(c, b)",
            "return o");
    assertThat(type(plan, "a")).isEqualTo("f32[512, 1]");
    assertThat(type(plan, "b")).isEqualTo("f32[1, 1024]");
    assertThat(type(plan, "o")).isEqualTo("f32[512, 1024]");
  }

  /** Types of results may depend on which operands are only numbers. */
  @Test
  void numbersStayTensors() {
    var plan =
        plan(
            "e = aten::expand(n, [512, 1024])",
            "a = aten::exp(e)",
            "o = aten::mul.Tensor(a, x)",
            "return o");
    assertThat(type(plan, "a")).isEqualTo("f32[512, 1024]");
  }
}
