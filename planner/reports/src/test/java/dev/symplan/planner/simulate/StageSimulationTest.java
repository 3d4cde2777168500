package dev.symplan.planner.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Reports about plans of stages with different collectives, on hosts of different sizes. */
class StageSimulationTest {
  private static final long SEED = Fuzz.seed(22_970_000);

  private static Plan plan(StageProgram program) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withHosts(new Hosts(program.hosts())))
        .compile(GraphParser.parse(new SourceFile("stages.graph", program.text())));
  }

  /** A stage waits for the one before it, and only the row that both have says so. */
  @Test
  void aStageWaitsForAnother() {
    var text =
        """
        graph version 1
        group first = [0, 1, 2]
        group all = [0:4]
        graph g(x: f32[1024, 1024]) ranks [0, 1, 2] {
          a = _c10d_functional::all_reduce(x, "sum", "first")
          b = aten::mm(a, a)
          c = _c10d_functional::all_reduce(b, "sum", "all")
          return c
        }
        graph g(x: f32[1024, 1024]) ranks [3] {
          c = _c10d_functional::all_reduce(x, "sum", "all")
          return c
        }
        """;
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withHosts(Hosts.parse("3,1").orElseThrow()))
            .compile(GraphParser.parse(new SourceFile("two.graph", text)));
    var scenario = Scenario.of(Job.of(plan, plan.topology()));
    var step = SimulatedStep.of(scenario);
    var views = ImmutableList.of(View.SUMMARY, View.COLLECTIVES, View.SCHEDULE);
    Golden.check("simulate/stages.dump", TextRenderer.render(PlanReport.of(plan, views)));
    Golden.check("simulate/stages.txt", SimulationReport.of(scenario).text());
    assertThat(step.collectives())
        .extracting(SimulatedStep.Collective::index)
        .containsExactly(0, 1);
    var a = step.collectives().getFirst();
    var c = step.collectives().getLast();
    assertThat(a.waited()).isZero();
    // The last stage comes at once, the others behind an all_reduce and a product.
    assertThat(c.waited()).isGreaterThan(a.micros());
    assertThat(step.micros()).isEqualTo(c.waited() + c.micros());
  }

  @Tag("random")
  @Test
  void allStagesComeToTheirEnds() {
    Fuzz.each(
        40,
        number -> {
          var random = new Random(SEED + number);
          var program = StageProgram.draw(random, 4, List.of(DType.F32, DType.BF16));
          var plan = plan(program);
          var scenario = Scenario.of(Job.of(plan, plan.topology()));
          var step = SimulatedStep.of(scenario);
          assertThat(step.micros()).isPositive();
          assertThat(step.exposedMicros()).isNotNegative();
          assertThat(SimulationReport.of(scenario).text()).contains("predicted");
          var views = ImmutableList.copyOf(View.values());
          assertThat(TextRenderer.render(PlanReport.of(plan, views))).isNotEmpty();
        });
  }
}
