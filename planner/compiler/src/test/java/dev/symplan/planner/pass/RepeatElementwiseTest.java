package dev.symplan.planner.pass;

import static dev.symplan.planner.pass.StepNames.steps;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

/** Elementwise ops run again where that takes less memory than keeping what they make. */
class RepeatElementwiseTest {
  private static final long SHORT = 2L * 512 * 2048;

  /** In the given order, so that no op moves. */
  private static final CompileOptions AS_GIVEN =
      CompileOptions.DEFAULT.withRanks(1).withReorderBudget(OptionalDouble.empty());

  private static Plan plan(CompileOptions options, String... lines) {
    var text =
        """
        graph version 1
        graph t(x: bf16[512, 1024], u: bf16[1024, 2048], w: bf16[2048, 512], k: bf16[512, 2048], l: f32[512, 2048]) {
          %s
        }
        """
            .formatted(String.join("\n  ", lines));
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  private static long bytes(Plan plan) {
    return plan.rankPlans().getFirst().local().bytes();
  }

  /** silu of g, and a gradient of it, which depends on the product after it. */
  private static final String[] LINES = {
    "g = aten::mm(x, u)",
    "c = prims::convert_element_type(g, torch.float32)",
    "s = aten::sigmoid(c)",
    "d = aten::mul.Tensor(c, s)",
    "a = prims::convert_element_type(d, torch.bfloat16)",
    "m = aten::mm(a, w)",
    "t = aten::mm(m, k)",
    "f = prims::convert_element_type(t, torch.float32)",
    "e = aten::mul.Tensor(f, s)",
    "h = aten::mul.Tensor(e, c)",
    "b = prims::convert_element_type(h, torch.bfloat16)",
    "n = aten::mm(b, w)",
    "return n"
  };

  @Test
  void aGradientMakesAgainWhatTakesMoreMemory() {
    var again = plan(AS_GIVEN, LINES);
    assertThat(steps(again))
        .containsExactly("g", "c s d a", "m", "t", "c_again s_again f e h b", "n");
    // g and a, then g and t, in whose place b is; m or n besides.
    assertThat(bytes(again)).isEqualTo(2 * SHORT + 2L * 512 * 512);
    assertThat(steps(plan(AS_GIVEN.withFusion(false), LINES)))
        .noneMatch(name -> name.contains("again"));
  }

  /** s can be made of c, which the caller gets anyway. */
  @Test
  void whatTheCallerGetsIsRead() {
    var lines = LINES.clone();
    lines[12] = "return n, c";
    assertThat(steps(plan(AS_GIVEN, lines)))
        .containsExactly("g", "c s d a", "m", "t", "s_again f e h b", "n");
  }

  /** Of the tensors that the first kernel reads or makes, those that take the least are kept. */
  @Test
  void aTensorBetweenIsKeptInstead() {
    var lines = LINES.clone();
    lines[1] =
        "y = aten::relu(l)\n  z = aten::sum.dim_IntList(y, [0])\n  r = aten::add.Tensor(g, y)\n"
            + "  q = prims::convert_element_type(r, torch.bfloat16)\n"
            + "  c = prims::convert_element_type(q, torch.float32)";
    lines[12] = "return n, z";
    var plan = plan(AS_GIVEN, lines);
    assertThat(steps(plan)).contains("c_again s_again f e h b");
    var rank = plan.rankPlans().getFirst();
    assertThat(
            rank.graph().values().stream()
                .filter(value -> List.of("q", "c", "s").contains(value.name()))
                .filter(value -> rank.placement(value).exists())
                .map(value -> value.name()))
        .containsExactly("q");
  }

  @Test
  void whatIsWrittenMeanwhileIsNotReadAgain() {
    var lines = LINES.clone();
    lines[6] = "z = aten::zero_(g)\n  t = aten::mm(m, k)";
    assertThat(steps(plan(AS_GIVEN, lines))).noneMatch(name -> name.contains("again"));
  }

  /** The caller may have filled inputs anew between two graphs. */
  @Test
  void noOpRunsAgainInAnotherGraph() {
    var lines = LINES.clone();
    lines[6] = "symplan::border(\"later\", 5, 0)\n  t = aten::mm(m, k)";
    assertThat(steps(plan(AS_GIVEN, lines))).noneMatch(name -> name.contains("again"));
  }

  /** To make a again, l would be kept, which takes twice as much. */
  @Test
  void smallTensorsAreKept() {
    assertThat(
            steps(
                plan(
                    AS_GIVEN,
                    "g = aten::exp(l)",
                    "v = aten::cumsum(g, 1)",
                    "c = aten::sigmoid(v)",
                    "a = prims::convert_element_type(c, torch.bfloat16)",
                    "m = aten::mm(a, w)",
                    "t = aten::mm(m, k)",
                    "e = aten::mul.Tensor(t, a)",
                    "n = aten::mm(e, w)",
                    "return n")))
        .noneMatch(name -> name.contains("again"));
  }
}
