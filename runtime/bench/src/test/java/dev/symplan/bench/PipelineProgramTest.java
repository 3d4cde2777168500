package dev.symplan.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.Plan;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Plans of many ranks are as large as those of their graphs. */
class PipelineProgramTest {
  private static final int STAGES = 16;

  private static Plan plan(Program program) {
    return Compiler.forTarget(Target.H200_X8).compile(program);
  }

  private static int size(Plan plan) {
    return PlanFile.toJson(plan).length();
  }

  /** 16,384 ranks: a graph for each of 16 stages, 128 replicas of 8 ranks. */
  @Test
  void stagesTogetherAreAsLargeAsAlone() {
    var pipeline = new PipelineProgram(STAGES, 128, 8, 4, 1);
    var together = plan(pipeline.program());

    assertThat(together.worldSize()).isEqualTo(16_384);
    // One plan for each graph, and not for each rank.
    assertThat(together.rankPlans()).hasSize(STAGES);
    assertThat(together.rankPlans()).doesNotHaveDuplicates();
    int alone = IntStream.range(0, STAGES).map(stage -> size(plan(pipeline.alone(stage)))).sum();
    assertThat(size(together)).isLessThan(alone + alone / 2);
  }

  /** A rank adds only the number of its plan. */
  @Test
  void ranksOfTheSameGraphAddOnlyNumbers() {
    var few = plan(new PipelineProgram(1, 1, 8, 4, 1).program());
    var many = plan(new PipelineProgram(1, 128, 8, 4, 1).program());

    assertThat(many.worldSize()).isEqualTo(1024);
    assertThat(many.rankPlans()).hasSize(1);
    // A group across domains has as many verdicts; their reasons have longer texts.
    assertThat(size(many)).isLessThan(size(few) + size(few) / 2);
  }
}
