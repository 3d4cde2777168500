package dev.symplan.planner.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.Pass;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.place.MergeStorages;
import dev.symplan.planner.pass.place.Schedule;
import dev.symplan.planner.pass.place.ScheduleSteps;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.verify.RandomPrograms;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PipelineTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");
  private static final long SEED = 20_261_122;
  private static final int PROGRAMS = 300;

  private static void compile(String sample, PassObserver observer) {
    Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(4))
        .observedBy(observer)
        .compile(SAMPLES.resolve(sample + ".graph"));
  }

  @Test
  void everyPassFindsWhatItNeeds() {
    var given = new HashSet<Fact<?>>();
    for (var pass : Pipeline.passes()) {
      assertThat(given).as("needed by %s", pass).containsAll(pass.needs());
      given.addAll(pass.gives());
    }
    assertThat(given).contains(SealPlan.PLAN);
  }

  @Test
  void everyPassRunsOnceInItsOrderAndOnlyVerifyEndsTheList() {
    var seen = new ArrayList<Pass>();
    compile(
        "fsdp_layer",
        new PassObserver() {
          @Override
          public void after(Pass pass, PlanState state, PassContext context) {
            seen.add(pass);
          }
        });
    assertThat(seen).isEqualTo(Pipeline.passes());
    assertThat(seen.getLast().name()).isEqualTo("verify");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tp_mlp", "fsdp_layer", "sp_block", "data_parallel", "custom_op"})
  void statesOfSamplesFitTogether(String sample) {
    var checks = new StateChecks();
    compile(sample, checks);
    assertThat(checks.states()).isGreaterThan(Pipeline.passes().size());
  }

  @Test
  void statesOfRandomProgramsFitTogether() {
    var checks = new StateChecks();
    int refused = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var program = RandomPrograms.program(new Random(seed));
      try {
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(4))
            .observedBy(checks)
            .compile(program);
      } catch (CompileException e) {
        refused++;
      } catch (AssertionError e) {
        throw new AssertionError("seed " + seed + ": " + e.getMessage(), e);
      }
    }
    assertThat(refused).isLessThan(PROGRAMS / 10);
    assertThat(checks.states()).isGreaterThan(10 * PROGRAMS);
  }

  /** The state after the pass called so. */
  private static GraphState stateAfter(String sample, String name) {
    var found = new ArrayList<GraphState>();
    compile(
        sample,
        new PassObserver() {
          @Override
          public void after(Pass pass, PlanState state, PassContext context) {
            if (pass.name().equals(name)) {
              found.addAll(state.graphs());
            }
          }
        });
    return found.getFirst();
  }

  private static Pass pass(String name) {
    return Pipeline.passes().stream().filter(p -> p.name().equals(name)).findFirst().orElseThrow();
  }

  private static void assertRefused(GraphState broken, String pass, String message) {
    assertThatThrownBy(() -> new StateChecks().check(pass(pass), broken))
        .isInstanceOf(AssertionError.class)
        .hasMessageStartingWith("after " + pass + ": ")
        .hasMessageContaining(message);
  }

  @Test
  void aScheduleWithoutOneOfTheStepsDoesNotFit() {
    var state = stateAfter("fsdp_layer", "schedule");
    var schedule = state.get(ScheduleSteps.SCHEDULES).getFirst();
    for (var steps :
        List.of(
            schedule.steps().subList(1, schedule.steps().size()),
            schedule.steps().reverse(),
            ImmutableList.copyOf(
                List.of(schedule.steps().getFirst(), schedule.steps().getFirst())))) {
      var broken =
          new Schedule(
              steps,
              schedule.streams(),
              schedule.stepOfOp(),
              schedule.startStep(),
              schedule.endStep(),
              schedule.micros());
      assertRefused(state.with(ScheduleSteps.SCHEDULES, ImmutableList.of(broken)), "schedule", "");
    }
  }

  @Test
  void factsAboutAnotherNumberOfCollectivesDoNotFit() {
    var state = stateAfter("fsdp_layer", "merge");
    assertRefused(
        state.with(MergeStorages.IN_PLACE, ImmutableList.of()), "merge", "in-place collectives");
    assertRefused(
        state.with(SelectVariants.SELECTIONS, ImmutableList.of()), "select", "selections");
  }
}
