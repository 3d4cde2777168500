package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is added to a residual, and the norm of the sum, are one kernel in the memory of both. */
class ResidualNormTest {

  private static RankPlan plan(String dtype, boolean fusion) {
    var text =
        """
        graph version 1
        group tp = [0, 1]
        graph t(x: %1$s[16, 1024], i: %1$s[1024, 1024], w: %1$s[1024], o: %1$s[1024, 1024]) {
          h = aten::mm(x, i)
          z = aten::mm(h, o)
          s = _c10d_functional::all_reduce(z, "sum", "tp")
          y = _c10d_functional::wait_tensor(s)
          a = aten::add.Tensor(h, y)
          p = aten::pow.Tensor_Scalar(a, 2)
          m = aten::mean.dim(p, [-1], True)
          e = aten::add.Tensor(m, 1e-05)
          r = aten::rsqrt(e)
          u = aten::mul.Tensor(a, r)
          v = aten::mul.Tensor(w, u)
          k = aten::mm(v, o)
          l = aten::add.Tensor(a, k)
          return l
        }
        """
            .formatted(dtype);
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(2).withFusion(fusion))
        .compile(GraphParser.parse(new SourceFile("t.graph", text)))
        .rankPlans()
        .getFirst();
  }

  @ParameterizedTest
  @ValueSource(strings = {"bf16", "f32"})
  void areOneKernel(String dtype) {
    var plan = plan(dtype, true);
    assertThat(plan.steps())
        .filteredOn(Step.Fused.class::isInstance)
        .singleElement()
        .isInstanceOfSatisfying(
            Step.Fused.class, fused -> assertThat(fused.ops().length()).isEqualTo(7));
    assertThat(plan.local().bytes()).isLessThanOrEqualTo(plan(dtype, false).local().bytes());
  }
}
