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

/** Elementwise ops run with the op that reads what they make, if that takes no more memory. */
class SinkElementwiseTest {

  private static Plan plan(CompileOptions options, String inputs, String... lines) {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(%s) {
          %s
        }
        """
            .formatted(inputs, String.join("\n  ", lines));
    return Compiler.forTarget(Target.H200_X4)
        .with(options.withRanks(2))
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  private static final String GATED =
      "x: bf16[512, 1024], u: bf16[1024, 2048], v: bf16[1024, 2048]";

  private static final String[] LINES = {
    "a = aten::mm(x, u)",
    "c = prims::convert_element_type(a, torch.float32)",
    "s = aten::silu(c)",
    "d = prims::convert_element_type(s, torch.bfloat16)",
    "b = aten::mm(x, v)",
    "y = aten::mul.Tensor(d, b)",
    "return y"
  };

  @Test
  void anActivationRunsWithTheProductThatReadsIt() {
    assertThat(steps(plan(CompileOptions.DEFAULT, GATED, LINES)))
        .containsExactly("a", "b", "c s d y");
    assertThat(steps(plan(CompileOptions.DEFAULT.withFusion(false), GATED, LINES)))
        .containsExactly("a", "c", "s", "d", "b", "y");
  }

  @Test
  void opsThatOthersReadStay() {
    var lines = LINES.clone();
    lines[6] = "return y, d";
    assertThat(steps(plan(CompileOptions.DEFAULT, GATED, lines)))
        .containsExactly("a", "c s d", "b", "y");
    lines[4] = "b = aten::mm(d, v)";
    lines[6] = "return y";
    assertThat(
            steps(
                plan(
                    CompileOptions.DEFAULT,
                    "x: bf16[512, 1024], u: bf16[1024, 2048], v: bf16[2048, 2048]",
                    lines)))
        .containsExactly("a", "c s d", "b", "y");
  }

  /** The tensor that would live on is larger than the one that is made of it. */
  @Test
  void opsThatSaveMemoryStay() {
    assertThat(
            steps(
                plan(
                    CompileOptions.DEFAULT,
                    "x: f32[512, 1024], u: f32[1024, 2048], w: bf16[512, 1024], v: bf16[1024,"
                        + " 2048]",
                    "a = aten::mm(x, u)",
                    "d = prims::convert_element_type(a, torch.bfloat16)",
                    "b = aten::mm(w, v)",
                    "y = aten::mul.Tensor(d, b)",
                    "return y")))
        .containsExactly("a", "d", "b", "y");
  }

  /** They may hide it. */
  @Test
  void opsDoNotMoveOverCollectives() {
    var lines = LINES.clone();
    lines[4] =
        "r = _c10d_functional::all_reduce(x, \"sum\", \"g\")\n"
            + "  w = _c10d_functional::wait_tensor(r)\n"
            + "  b = aten::mm(w, v)";
    var asGiven = CompileOptions.DEFAULT.withReorderBudget(OptionalDouble.empty());
    assertThat(steps(plan(asGiven, GATED, lines))).contains("c s d", "y");
  }

  /** The operand is written before the product is reached. */
  @Test
  void opsDoNotMoveOverWrites() {
    var lines = LINES.clone();
    lines[4] = "z = aten::zero_(a)\n  b = aten::mm(x, v)";
    assertThat(steps(plan(CompileOptions.DEFAULT, GATED, lines))).contains("c s d", "y");
  }

  /** What they read there is small: a label of each row, and not an element. */
  @Test
  void opsLeaveAKernelOfFewElements() {
    assertThat(
            steps(
                plan(
                    CompileOptions.DEFAULT,
                    "x: f32[512, 1024], u: f32[1024, 1024], i: f32[512, 1], k: f32[1024]",
                    "l = aten::neg(i)",
                    "e = aten::eq.Tensor(l, k)",
                    "b = aten::mm(x, u)",
                    "y = aten::mul.Tensor(e, b)",
                    "return y")))
        .containsExactly("b", "l_again e y");
  }

  /** Ops at the end of a kernel that goes by rows stay with it. */
  @Test
  void opsDoNotLeaveTheirKernel() {
    assertThat(
            steps(
                plan(
                    CompileOptions.DEFAULT,
                    "x: f32[512, 1024], u: f32[1024, 1024]",
                    "s = aten::_softmax(x, 1, False)",
                    "d = aten::neg(s)",
                    "b = aten::mm(x, u)",
                    "y = aten::mul.Tensor(d, b)",
                    "return y")))
        .containsExactly("s d", "b", "y");
  }
}
