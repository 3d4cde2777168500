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

/** Elementwise ops run in the kernel that makes what they read, if that takes no more memory. */
class LiftElementwiseTest {

  /** In the given order, so that only the pass moves ops. */
  private static final CompileOptions AS_GIVEN =
      CompileOptions.DEFAULT.withRanks(2).withReorderBudget(OptionalDouble.empty());

  private static Plan plan(CompileOptions options, String... lines) {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(x: bf16[512, 1024], u: bf16[1024, 2048], v: bf16[512, 2048], w: bf16[2048, 512]) {
          %s
        }
        """
            .formatted(String.join("\n  ", lines));
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  private static long bytes(Plan plan) {
    return plan.symmetric().bytes() + plan.rankPlans().getFirst().local().bytes();
  }

  /** The gradient of silu(g) · b: a product of the gradient of b stands between its parts. */
  private static final String[] LINES = {
    "g = aten::mm(x, u)",
    "c = prims::convert_element_type(g, torch.float32)",
    "s = aten::sigmoid(c)",
    "d = aten::mul.Tensor(c, s)",
    "a = prims::convert_element_type(d, torch.bfloat16)",
    "b = aten::mul.Tensor(a, v)",
    "m = aten::mm(b, w)",
    "e = aten::sub.Tensor(1, s)",
    "f = aten::mul.Tensor(c, e)",
    "h = prims::convert_element_type(f, torch.bfloat16)",
    "n = aten::mm(h, w)",
    "y = aten::add.Tensor(m, n)",
    "return y"
  };

  @Test
  void aGradientRunsWithTheOpsThatMakeWhatItReads() {
    assertThat(steps(plan(AS_GIVEN, LINES))).containsExactly("g", "c s d a b e f h", "m", "n", "y");
    assertThat(steps(plan(AS_GIVEN.withFusion(false), LINES)))
        .containsExactly("g", "c", "s", "d", "a", "b", "m", "e", "f", "h", "n", "y");
  }

  @Test
  void whatTheyPassOnTakesNoMemory() {
    long apart = bytes(plan(AS_GIVEN.withFusion(false), LINES));
    long together = bytes(plan(AS_GIVEN, LINES));
    // c and s are in f32; of g, b and h in bf16, one takes the place of another.
    assertThat(together).isEqualTo(2 * 2L * 512 * 2048 + 2L * 512 * 512);
    assertThat(apart).isGreaterThanOrEqualTo(2 * 4L * 512 * 2048);
  }

  @Test
  void viewsMoveAlong() {
    var lines = LINES.clone();
    lines[8] = "r = aten::view(v, [512, 2048])\n  f = aten::mul.Tensor(r, e)";
    assertThat(steps(plan(AS_GIVEN, lines))).containsExactly("g", "c s d a b e f h", "m", "n", "y");
  }

  /** What is made of it takes as much memory as what is read, which is needed longer anyway. */
  @Test
  void opsWhoseOperandsOthersReadStay() {
    var lines = LINES.clone();
    lines[12] = "return y, c, s";
    assertThat(steps(plan(AS_GIVEN, lines)))
        .containsExactly("g", "c s d a b", "m", "e f h", "n", "y");
  }

  /** Less is in memory between if the smaller tensor is. */
  @Test
  void opsThatMakeLargerTensorsStay() {
    assertThat(
            steps(
                plan(
                    AS_GIVEN,
                    "g = aten::mm(x, u)",
                    "a = aten::relu(g)",
                    "m = aten::mm(a, w)",
                    "f = prims::convert_element_type(a, torch.float32)",
                    "h = aten::exp(f)",
                    "return h, m")))
        .containsExactly("g", "a", "m", "f h");
  }

  /** A sum over rows reads what they make from memory, not from their kernel. */
  @Test
  void opsDoNotLeaveTheirKernel() {
    assertThat(
            steps(
                plan(
                    AS_GIVEN,
                    "g = aten::mm(x, u)",
                    "a = aten::relu(g)",
                    "m = aten::mm(a, w)",
                    "f = aten::mul.Tensor(a, v)",
                    "h = aten::sum.dim_IntList(f, [1])",
                    "return h, m")))
        .containsExactly("g", "a", "m", "f h");
  }

  /** They may hide it. */
  @Test
  void opsDoNotMoveOverCollectives() {
    var lines = LINES.clone();
    lines[6] =
        "r = _c10d_functional::all_reduce(b, \"sum\", \"g\")\n"
            + "  q = _c10d_functional::wait_tensor(r)\n"
            + "  m = aten::mm(q, w)";
    assertThat(steps(plan(AS_GIVEN, lines))).contains("c s d a b", "c_again s_again e f h");
  }

  /** The operand is written before they are reached. */
  @Test
  void opsDoNotMoveOverWrites() {
    var lines = LINES.clone();
    lines[6] = "m = aten::mm(b, w)\n  z = aten::zero_(v)";
    assertThat(steps(plan(AS_GIVEN, lines))).contains("c s d a b", "c_again s_again e f h");
  }
}
