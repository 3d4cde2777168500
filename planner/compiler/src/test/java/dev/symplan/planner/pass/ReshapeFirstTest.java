package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Ops of logits run in the shape in which the loss reads them, and so in its kernels. */
class ReshapeFirstTest {

  private static Plan plan(CompileOptions options, String... lines) {
    var text =
        """
        graph version 1
        graph t(x: bf16[64, 256], u: bf16[256, 4096], i: i64[64, 1], s: f32[64, 1], k: i64[4096]) {
          %s
        }
        """
            .formatted(String.join("\n  ", lines));
    return Compiler.forTarget(Target.H200_X4)
        .with(options.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  /** {@return the number of kernels, and the bytes of the arena} */
  private static List<Long> figures(Plan plan) {
    var rank = plan.rankPlans().getFirst();
    long kernels =
        rank.steps().stream()
            .filter(step -> step instanceof Step.Compute || step instanceof Step.Fused)
            .count();
    return List.of(kernels, rank.local().bytes());
  }

  /** The gradient of a loss in f32, of logits in bf16 of a batch of 4. */
  private static final String[] LINES = {
    "m = aten::mm(x, u)",
    "w = aten::where.self(q, i, j)",
    "v = aten::view(m, [4, 16, 4096])",
    "c = prims::convert_element_type(v, torch.float32)",
    "r = aten::view(c, [64, 4096])",
    "e = aten::eq.Tensor(w, k)",
    "o = aten::mul.Tensor(e, s)",
    "f = aten::exp(r)",
    "t = aten::sum.dim_IntList(o, [1], True)",
    "p = aten::mul.Tensor(f, t)",
    "d = aten::sub.Tensor(o, p)",
    "b = aten::view(d, [4, 16, 4096])",
    "h = prims::convert_element_type(b, torch.bfloat16)",
    "a = aten::view(h, [64, 4096])",
    "y = aten::mm(a, n)",
    "return y"
  };

  private static String[] lines() {
    var lines = LINES.clone();
    lines[1] = "j = aten::neg(i)\n  q = aten::ge.Scalar(i, 0)\n  " + lines[1];
    lines[14] = "n = aten::t(u)\n  " + lines[14];
    return lines;
  }

  @Test
  void aLossIsOneKernel() {
    var figures = figures(plan(CompileOptions.DEFAULT, lines()));
    // Two products, what picks labels, and the loss in the memory of the logits.
    assertThat(figures.getFirst()).isLessThanOrEqualTo(4);
    assertThat(figures.getLast()).isLessThan(2L * 64 * 4096 + (1 << 17));
    assertThat(figures(plan(CompileOptions.DEFAULT.withFusion(false), lines())).getLast())
        .isGreaterThan(4L * 64 * 4096);
  }

  private static List<Integer> ranks(String op, String... lines) {
    return plan(CompileOptions.DEFAULT, lines).rankPlans().getFirst().graph().ops().stream()
        .filter(own -> own.def().name().toString().equals(op))
        .map(own -> own.result().tensor().rank())
        .toList();
  }

  /** Two gradients of a gate read one product; views in between show the shape that there is. */
  @Test
  void opsBehindViewsOfTheSameShapeChangeTogether() {
    assertThat(
            ranks(
                "aten::mul.Tensor",
                "m = aten::mm(x, u)",
                "v = aten::view(m, [4, 16, 4096])",
                "e = aten::exp(v)",
                "g = aten::mul.Tensor(e, v)",
                "w = aten::view(g, [4, 16, 4096])",
                "z = aten::view(w, [4, 16, 4096])",
                "h = aten::mul.Tensor(w, e)",
                "a = aten::view(z, [64, 4096])",
                "b = aten::view(h, [64, 4096])",
                "n = aten::t(u)",
                "c = aten::mm(a, n)",
                "d = aten::mm(b, n)",
                "return c, d"))
        .containsExactly(2, 2);
  }

  /** The caller gets one of them in its shape. */
  @Test
  void viewsOfTheSameShapeThatTheCallerGetsStay() {
    assertThat(
            ranks(
                "aten::exp",
                "m = aten::mm(x, u)",
                "v = aten::view(m, [4, 16, 4096])",
                "e = aten::exp(v)",
                "w = aten::view(e, [4, 16, 4096])",
                "a = aten::view(w, [64, 4096])",
                "n = aten::t(u)",
                "c = aten::mm(a, n)",
                "return c, w"))
        .containsExactly(3);
  }

  /** Of scalars alone, an op makes no other shape. */
  @Test
  void scalarsStayScalars() {
    assertThat(
            ranks(
                "aten::neg",
                "p = aten::sum(s)",
                "q = aten::neg(p)",
                "r = aten::view(q, [1])",
                "y = aten::add.Tensor(s, r)",
                "return y"))
        .containsExactly(0);
  }

  /** As a scalar, the product would have the type of the other one. */
  @Test
  void tensorsOfOneElementBecomeNoScalars() {
    assertThat(
            ranks(
                "aten::mul.Tensor",
                "p = aten::sum(s)",
                "a = aten::slice.Tensor(x, 0, 0, 1)",
                "b = aten::slice.Tensor(u, 1, 0, 1)",
                "m = aten::mm(a, b)",
                "h = aten::mul.Tensor(m, p)",
                "v = aten::view(h, [])",
                "y = aten::add.Tensor(s, v)",
                "return y"))
        .containsExactly(2);
  }

  /** Its sizes are those that the caller wants. */
  @Test
  void whatTheCallerGetsStays() {
    var plan =
        plan(
            CompileOptions.DEFAULT,
            "m = aten::mm(x, u)",
            "v = aten::view(m, [4, 16, 4096])",
            "c = prims::convert_element_type(v, torch.float32)",
            "r = aten::view(c, [64, 4096])",
            "e = aten::exp(r)",
            "return e, c");
    var types =
        plan.rankPlans().getFirst().graph().outputValues().stream()
            .map(value -> value.type().toString())
            .toList();
    assertThat(types).containsExactly("f32[64, 4096]", "f32[4, 16, 4096]");
  }

  /** Rows of the one are parts of rows of the other, and no kernel makes both. */
  @Test
  void opsOfAKernelByRowsStay() {
    var plan =
        plan(
            CompileOptions.DEFAULT,
            "m = aten::mm(x, u)",
            "a = aten::_softmax(m, 1, False)",
            "c = aten::neg(a)",
            "r = aten::view(c, [1024, 256])",
            "e = aten::_softmax(r, 1, False)",
            "return e");
    assertThat(figures(plan).getFirst()).isEqualTo(3);
  }
}
