package dev.symplan.runtime.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.calibrate.BarChart;
import dev.symplan.planner.calibrate.BarChart.Bar;
import dev.symplan.planner.calibrate.BarChart.Part;
import dev.symplan.planner.calibrate.PyTorchTimes;
import java.util.List;
import java.util.OptionalDouble;

/** The measurements of a plan as SVG: a run, and the first rank's steps by kind. */
public final class GraphChart {
  private GraphChart() {}

  /**
   * {@return the drawing}
   *
   * @param comments how it was measured
   * @param pytorch the times of PyTorch for the same program; may be empty
   */
  public static String svg(
      List<String> comments, GraphTimes times, List<PyTorchTimes.Row> pytorch) {
    var runs = ImmutableList.<Bar>builder();
    runs.add(bar("host", times.host().median()));
    times.device().ifPresent(device -> runs.add(bar("device", device.median())));
    pytorch.forEach(row -> runs.add(bar(GraphReport.label(row), row.micros())));
    int rank = times.steps().stream().mapToInt(step -> step.activity().rank()).min().orElse(0);
    return BarChart.svg(
        "Times of " + times.plan().name(),
        comments,
        List.of(
            new Part("one run", runs.build()),
            new Part(
                "steps of rank %s by kind; dark: what the device takes at least".formatted(rank),
                KindSum.byKind(times.steps(rank), times.roof()).stream()
                    .map(kind -> new Bar(kind.kind(), kind.micros(), kind.roof()))
                    .collect(ImmutableList.toImmutableList()))));
  }

  private static Bar bar(String label, double micros) {
    return new Bar(label, micros, OptionalDouble.empty());
  }
}
