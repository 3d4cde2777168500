package dev.symplan.planner.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;

/** Predicted times of whole programs beside the measured ones in {@code docs/figures}. */
class PredictedProgramsTest {
  private static final Path SHARED = Path.of(System.getProperty("symplan.shared", ""));
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final int RANKS = 2;

  private static final Pattern RUN =
      Pattern.compile("(?s)one run of (\\w+) on 2 ranks.*?\ndevice +([0-9.]+) ");

  @Test
  void areWithin15PercentOfTheMeasured() throws IOException {
    var graphs = SHARED.resolve("more/e2e_tp2");
    assumeTrue(Files.isDirectory(graphs), () -> "not here: " + graphs);
    var figures = Files.readString(ROOT.resolve("docs/figures/graphs-2xh200.txt"));
    int programs = 0;
    var runs = RUN.matcher(figures);
    while (runs.find()) {
      var plan =
          Compiler.forTarget(Target.H200_X4)
              .with(CompileOptions.DEFAULT.withRanks(RANKS))
              .compile(graphs.resolve(runs.group(1) + ".fx.txt"));
      var predicted = PredictedTimes.of(plan, plan.forRank(0)).total();
      assertThat(predicted)
          .as(runs.group(1))
          .isCloseTo(Double.parseDouble(runs.group(2)), Percentage.withPercentage(15));
      programs++;
    }
    assertThat(programs).isGreaterThanOrEqualTo(4);
  }
}
