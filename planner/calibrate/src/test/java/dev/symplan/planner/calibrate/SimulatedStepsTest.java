package dev.symplan.planner.calibrate;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.simulate.Job;
import dev.symplan.planner.simulate.Scenario;
import dev.symplan.planner.simulate.SimulatedStep;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * Simulated steps against steps that were measured on two emulated hosts. Their network is
 * calibrated on other points: single collectives of other sizes.
 */
class SimulatedStepsTest {
  private static final Path FIGURES =
      Path.of(System.getProperty("symplan.root", "..")).resolve("docs/figures");

  private static final int TIMES = 20;

  private record Measured(String kind, long rows, double micros) {

    /** Each collective takes what the one before gave. */
    String graph() {
      var text = new StringBuilder();
      text.append("graph version 1\ngroup all = [0, 1]\n");
      text.append("graph chain(x0: f32[%s, 1024]) {\n".formatted(rows));
      for (int i = 0; i < TIMES; i++) {
        text.append(
            kind.equals("all_reduce")
                ? """
                  r%1$s = _c10d_functional::all_reduce(x%1$s, "avg", "all")
                """
                    .formatted(i)
                : """
                  s%1$s = _c10d_functional::reduce_scatter_tensor(x%1$s, "avg", 2, "all")
                  w%1$s = _c10d_functional::wait_tensor(s%1$s)
                  r%1$s = _c10d_functional::all_gather_into_tensor(w%1$s, 2, "all")
                """
                    .formatted(i));
        text.append("  x%s = _c10d_functional::wait_tensor(r%s)\n".formatted(i + 1, i));
      }
      return text.append("  return x%s\n}\n".formatted(TIMES)).toString();
    }

    double simulated(Target target) {
      var options = CompileOptions.DEFAULT.withHosts(Hosts.parse("2x1").orElseThrow());
      var plan =
          Compiler.forTarget(target)
              .with(options)
              .compile(GraphParser.parse(new SourceFile("chain.graph", graph())));
      return SimulatedStep.of(Scenario.of(Job.of(plan, plan.topology()))).micros();
    }
  }

  private static List<Measured> steps() {
    var sink = new DiagnosticSink();
    var columns = ImmutableList.of("kind", "rows", "micros");
    var rows =
        new CsvReader(
            SourceReader.read(FIGURES.resolve("steps-2xh100.csv")),
            sink,
            columns,
            columns,
            String.join(",", columns));
    var steps =
        rows.read(
            () ->
                Optional.of(
                    new Measured(
                        rows.text("kind"),
                        rows.count("rows", Integer.MAX_VALUE),
                        rows.positive("micros"))));
    sink.throwIfErrors();
    return steps;
  }

  @Test
  void areNearMeasuredOnes() {
    var points = Points.read(FIGURES.resolve("hosts-2xh100.csv"));
    var target = Calibration.of(points, Target.H200_X4, "emulated").target();
    var errors = steps().stream().map(step -> step.simulated(target) / step.micros() - 1).toList();
    assertThat(errors).hasSize(6);
    assertThat(Measurements.median(errors.stream().map(Math::abs).toList()))
        .as("%s, with %s", errors, target.network())
        .isLessThan(0.15);
  }
}
