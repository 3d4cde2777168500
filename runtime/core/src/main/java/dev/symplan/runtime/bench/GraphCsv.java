package dev.symplan.runtime.bench;

import com.google.common.base.Ascii;
import com.google.common.base.CharMatcher;
import dev.symplan.planner.calibrate.PyTorchTimes;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.profile.ProfiledStep;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * The measurements of a plan as CSV, for all ranks; {@code docs/performance.md} lists the columns.
 */
public final class GraphCsv {
  private static final CharMatcher SPECIAL = CharMatcher.anyOf(",\"\n\r");

  private final StringBuilder out = new StringBuilder();

  private enum Column {
    ROW,
    RANK,
    NAME,
    DOES,
    VARIANT,
    STREAM,
    MICROS,
    MIN_US,
    MAX_US,
    PREDICTED_US,
    BYTES,
    FLOPS,
    ROOF_US,
    WAITED_US,
    KERNEL
  }

  private GraphCsv() {}

  /**
   * {@return the text}
   *
   * @param comments how it was measured
   * @param pytorch the times of PyTorch for the same program; may be empty
   */
  public static String print(
      List<String> comments, GraphTimes times, List<PyTorchTimes.Row> pytorch) {
    var csv = new GraphCsv();
    comments.forEach(comment -> csv.out.append("# ").append(comment).append('\n'));
    csv.out.append(
        Arrays.stream(Column.values())
            .map(column -> Ascii.toLowerCase(column.name()))
            .collect(Collectors.joining(",", "", "\n")));
    csv.all(times, pytorch);
    return csv.out.toString();
  }

  /** One line; what is not set is empty. */
  private static final class Line {
    private final EnumMap<Column, String> cells = new EnumMap<>(Column.class);

    Line(String row, String name) {
      set(Column.ROW, row).set(Column.NAME, name);
    }

    Line set(Column column, String text) {
      cells.put(column, text);
      return this;
    }

    Line set(Column column, double micros) {
      return set(column, number(micros));
    }

    Line rank(int rank) {
      return set(Column.RANK, Integer.toString(rank));
    }

    Line micros(double median, double least, double most) {
      return set(Column.MICROS, median).set(Column.MIN_US, least).set(Column.MAX_US, most);
    }

    Line micros(Timing timing) {
      return micros(timing.median(), timing.least(), timing.most());
    }

    Line bytes(long bytes) {
      return set(Column.BYTES, Long.toString(bytes));
    }

    Line flops(double flops) {
      return set(Column.FLOPS, String.format(Locale.ROOT, "%.0f", flops));
    }

    String text() {
      return Arrays.stream(Column.values())
          .map(column -> quoted(cells.getOrDefault(column, "")))
          .collect(Collectors.joining(",", "", "\n"));
    }
  }

  private void add(Line line) {
    out.append(line.text());
  }

  private void all(GraphTimes times, List<PyTorchTimes.Row> pytorch) {
    times
        .roof()
        .copy()
        .ifPresent(
            copy -> add(new Line("roof", "copy").micros(copy.timing()).bytes(2 * copy.bytes())));
    times
        .roof()
        .products()
        .forEach(
            (dtype, product) ->
                add(
                    new Line("roof", "product of " + dtype.shortName())
                        .micros(product.timing())
                        .flops(product.flops())));
    add(new Line("run", "host").micros(times.host()));
    times.device().ifPresent(device -> add(new Line("run", "device").micros(device)));
    for (var row : pytorch) {
      add(new Line("run", GraphReport.label(row)).micros(row.micros(), row.least(), row.most()));
    }
    var ranks = new TreeSet<Integer>();
    times.steps().forEach(step -> ranks.add(step.activity().rank()));
    for (int rank : ranks) {
      memory(times, rank);
      communication(times.communication(rank), rank);
      times.steps(rank).forEach(step -> step(step, times.roof()));
    }
    for (var row : pytorch) {
      var label = GraphReport.label(row);
      add(new Line("memory", label + ": peak allocated").bytes(row.peakAllocated()));
      add(new Line("memory", label + ": peak reserved").bytes(row.peakReserved()));
      add(new Line("memory", label + ": in use").bytes(row.inUse()));
    }
  }

  private void memory(GraphTimes times, int rank) {
    var planned = PlannedMemory.of(times.plan(), rank);
    add(new Line("memory", "symmetric arena").rank(rank).bytes(planned.symmetric()));
    add(new Line("memory", "local arena").rank(rank).bytes(planned.local()));
    add(new Line("memory", "inputs").rank(rank).bytes(planned.inputs()));
    add(new Line("memory", "outputs").rank(rank).bytes(planned.outputs()));
    if (!times.inUse().isEmpty()) {
      add(new Line("memory", "in use").rank(rank).bytes(times.inUse().get(rank)));
    }
  }

  private void communication(Communication found, int rank) {
    add(
        new Line("communication", "total")
            .rank(rank)
            .set(Column.MICROS, found.total())
            .set(Column.WAITED_US, found.waited()));
    add(new Line("communication", "exposed").rank(rank).set(Column.MICROS, found.exposed()));
  }

  private void step(ProfiledStep step, Roof roof) {
    var activity = step.activity();
    var line =
        new Line("step", activity.label())
            .rank(activity.rank())
            .set(Column.DOES, step.what())
            .set(Column.STREAM, activity.stream().text())
            .set(Column.MICROS, activity.micros())
            .set(Column.PREDICTED_US, step.predicted())
            .bytes(step.bytes())
            .set(Column.KERNEL, activity.kernel());
    step.work()
        .ifPresent(
            work -> {
              line.flops(work.flops());
              roof.micros(work).ifPresent(micros -> line.set(Column.ROOF_US, micros));
            });
    step.traffic()
        .ifPresent(
            traffic ->
                line.set(Column.VARIANT, traffic.variant())
                    .set(Column.WAITED_US, traffic.waited()));
    add(line);
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }

  private static String quoted(String text) {
    return SPECIAL.matchesNoneOf(text) ? text : "\"" + text.replace("\"", "\"\"") + "\"";
  }
}
