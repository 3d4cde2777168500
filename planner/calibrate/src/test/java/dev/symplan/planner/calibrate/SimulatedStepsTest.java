package dev.symplan.planner.calibrate;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.simulate.Job;
import dev.symplan.planner.simulate.Scenario;
import dev.symplan.planner.simulate.SimulatedStep;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Simulated steps against steps that were measured on two emulated hosts. Their network is
 * calibrated on other points: single collectives of other sizes.
 */
class SimulatedStepsTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final Path FIGURES = ROOT.resolve("docs/figures");
  private static final Path PROGRAMS = Path.of("src/test/resources/steps");

  private record Measured(String program, double micros) {
    double simulated(Target target) {
      var options =
          CompileOptions.DEFAULT
              .withHosts(Hosts.parse("2x1").orElseThrow())
              .withRewrites(RewriteOptions.AUTO.withBucket(RewriteOptions.Mode.OFF));
      var plan =
          Compiler.forTarget(target).with(options).compile(PROGRAMS.resolve(program + ".graph"));
      return SimulatedStep.of(Scenario.of(Job.of(plan, plan.topology()))).micros();
    }
  }

  private static List<Measured> steps() {
    var sink = new DiagnosticSink();
    var needed = ImmutableList.of("program", "session", "micros", "min_us", "max_us");
    var rows =
        new CsvReader(
            SourceReader.read(FIGURES.resolve("steps-2xh100.csv")),
            sink,
            needed,
            needed,
            String.join(",", needed));
    var steps =
        rows.read(() -> Optional.of(new Measured(rows.text("program"), rows.positive("micros"))));
    sink.throwIfErrors();
    return steps;
  }

  @Test
  void areNearMeasuredOnes() {
    var points = Points.read(FIGURES.resolve("hosts-2xh100.csv"));
    var target = Calibration.of(points, Target.ofName("h100x4").orElseThrow(), "tcp").target();
    var simulated = new HashMap<String, Double>();
    var rows =
        steps().stream()
            .map(
                step -> {
                  double predicted =
                      simulated.computeIfAbsent(step.program(), _ -> step.simulated(target));
                  return new Row(step, predicted);
                })
            .toList();
    assertThat(rows).hasSize(20);
    assertThat(Measurements.median(rows.stream().map(Row::error).map(Math::abs).toList()))
        .as(rows.stream().map(Row::text).collect(Collectors.joining("\n", "\n", "\n")))
        .isLessThan(0.15);
  }

  private record Row(Measured step, double simulated) {
    double error() {
      return simulated / step.micros() - 1;
    }

    String text() {
      return String.format(
          Locale.ROOT,
          "%-12s %8.1f %8.1f %+.1f %%",
          step.program(),
          step.micros(),
          simulated,
          100 * error());
    }
  }
}
