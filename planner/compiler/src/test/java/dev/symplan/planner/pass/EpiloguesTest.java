package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.RankPlan;
import org.junit.jupiter.api.Test;

/** The gain of an epilogue counts when variants are compared. */
class EpiloguesTest {

  /** A residual and a norm behind the second product of a block, on two ranks. */
  private static RankPlan block(int tokens, CompileOptions options) {
    var text =
        """
        graph version 1
        group tp = [0, 1]
        graph block(x: bf16[%1$s, 4096], h: bf16[%1$s, 4096], w: bf16[4096, 4096], g: bf16[4096]) {
          y = aten::mm(x, w)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          s = _c10d_functional::wait_tensor(r)
          n = aten::add.Tensor(h, s)
          f = prims::convert_element_type(n, torch.float32)
          q = aten::pow.Tensor_Scalar(f, 2)
          m = aten::mean.dim(q, [-1], True)
          e = aten::rsqrt(m)
          o = aten::mul.Tensor(f, e)
          b = prims::convert_element_type(o, torch.bfloat16)
          u = aten::mul.Tensor(b, g)
          z = aten::mm(u, w)
          return n, z
        }
        """
            .formatted(tokens);
    return Compiler.forTarget(Target.H200_X4)
        .with(options.withRewrites(RewriteOptions.OFF))
        .compile(GraphParser.parse(new SourceFile("block.graph", text)))
        .rankPlans()
        .getFirst();
  }

  private static CollectivePlan collective(int tokens, CompileOptions options) {
    return block(tokens, options).collectives().getFirst();
  }

  @Test
  void oneShotWinsWithItsEpilogue() {
    var with = collective(2048, CompileOptions.DEFAULT);
    var without = collective(2048, CompileOptions.DEFAULT.withEpilogues(false));
    assertThat(with.variant()).isEqualTo(Variant.ONE_SHOT);
    assertThat(with.epilogue().orElseThrow().reason()).isEqualTo(Epilogue.Reason.FUSED);
    assertThat(without.variant()).isEqualTo(Variant.TWO_SHOT);
    assertThat(with.verdict().totalMicros()).isLessThan(without.verdict().totalMicros());
    assertThat(with.verdict().detail()).contains("its epilogue saves");
  }

  /** Of large results, only the launch would be saved. */
  @Test
  void twoShotHasEpiloguesOfSmallResults() {
    var options =
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.TWO_SHOT));
    assertThat(collective(512, options).epilogue().orElseThrow())
        .matches(epilogue -> epilogue.isFused() && epilogue.stored());
    assertThat(collective(514, options).epilogue()).contains(Epilogue.none(Epilogue.Reason.LARGE));
    assertThat(collective(511, options).epilogue()).contains(Epilogue.none(Epilogue.Reason.ROWS));
  }

  @Test
  void pushesHaveEpiloguesToo() {
    // Their workspaces are a large part of what so small a graph takes.
    var options = CompileOptions.DEFAULT.withObjective(Objective.TIME);
    for (int tokens : new int[] {16, 128}) {
      var plan = collective(tokens, options);
      assertThat(plan.variant()).isEqualTo(Variant.ONE_SHOT_PUSH);
      assertThat(plan.epilogue().orElseThrow().isFused()).isTrue();
      assertThat(plan.epilogue().orElseThrow().stored()).isFalse();
    }
  }

  /** A rank has whole rows of its slice, and gets those of the others. */
  @Test
  void pushesOfSlicesHaveEpilogues() {
    var options =
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.TWO_SHOT_PUSH));
    assertThat(collective(128, options).epilogue().orElseThrow())
        .matches(epilogue -> epilogue.isFused() && !epilogue.stored());
    assertThat(collective(127, options).epilogue()).contains(Epilogue.none(Epilogue.Reason.ROWS));
  }

  @Test
  void takesNoMoreMemoryThanKernelsApart() {
    for (int tokens : new int[] {16, 128}) {
      assertThat(block(tokens, CompileOptions.DEFAULT).maxLive())
          .isLessThanOrEqualTo(
              block(tokens, CompileOptions.DEFAULT.withEpilogues(false)).maxLive());
    }
  }
}
