package dev.symplan.runtime.bench;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.calibrate.PyTorchTimes;
import dev.symplan.planner.report.Table;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.profile.ProfiledStep;
import dev.symplan.runtime.profile.ProfiledStep.Traffic;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/** The measurements of a plan for people: the steps of one rank. */
public final class GraphReport {
  private static final String MICROS = "%.1f";

  private final GraphTimes times;
  private final List<PyTorchTimes.Row> pytorch;
  private final int rank;
  private final List<ProfiledStep> steps;
  private final double sum;
  private final StringBuilder out = new StringBuilder();

  private GraphReport(GraphTimes times, List<PyTorchTimes.Row> pytorch) {
    this.times = times;
    this.pytorch = pytorch;
    this.rank = times.steps().stream().mapToInt(step -> step.activity().rank()).min().orElse(0);
    this.steps = times.steps(rank);
    this.sum = steps.stream().mapToDouble(step -> step.activity().micros()).sum();
  }

  /**
   * {@return the text}
   *
   * @param pytorch the times of PyTorch for the same program; may be empty
   */
  public static String print(GraphTimes times, List<PyTorchTimes.Row> pytorch) {
    return new GraphReport(times, pytorch).print();
  }

  private String print() {
    roof();
    run();
    memory();
    communication();
    if (steps.isEmpty()) {
      out.append("nothing ran on rank %s%n".formatted(rank));
    } else {
      steps();
      kinds();
    }
    return out.toString();
  }

  private void roof() {
    var table = new Table("roof, measured first", "median, µs", "least", "most", "rate");
    times
        .roof()
        .copy()
        .ifPresent(
            copy ->
                row(
                    table,
                    "copy of " + Units.bytes(copy.bytes()),
                    copy.timing(),
                    number("%.1f GB/s", copy.rate())));
    times
        .roof()
        .products()
        .forEach(
            (dtype, product) ->
                row(
                    table,
                    "product of %s, %2$s × %2$s".formatted(dtype.shortName(), product.size()),
                    product.timing(),
                    number("%.2f TFLOP/s", product.rate() / 1e3)));
    out.append(table.isEmpty() ? "" : table.render() + "\n");
  }

  private static void row(Table table, String what, Timing timing, String last) {
    table.row(
        what,
        number(MICROS, timing.median()),
        number(MICROS, timing.least()),
        number(MICROS, timing.most()),
        last);
  }

  private void run() {
    var plan = times.plan();
    var table =
        new Table(
            "one run of %s on %s".formatted(plan.name(), Units.count(plan.worldSize(), "rank")),
            "median, µs",
            "least",
            "most");
    row(table, "host, from call to return", times.host(), "");
    times.device().ifPresent(device -> row(table, "device", device, ""));
    for (var row : pytorch) {
      table.row(
          label(row),
          number(MICROS, row.micros()),
          number(MICROS, row.least()),
          number(MICROS, row.most()));
    }
    out.append(table.render());
    pytorch.stream()
        .min(Comparator.comparingDouble(PyTorchTimes.Row::micros))
        .ifPresent(
            best -> {
              out.append(
                  number("%.3f", times.host().median() / best.micros())
                      + " times as long as %s, by the host's clock\n".formatted(label(best)));
              if (best.graphs() > 1) {
                out.append(
                    "PyTorch's times are of the %s graphs of %s together; this is one of them\n"
                        .formatted(best.graphs(), best.program()));
              }
            });
    out.append('\n');
  }

  static String label(PyTorchTimes.Row row) {
    return "PyTorch %s (%s)".formatted(row.mode(), row.program());
  }

  private void memory() {
    var planned = PlannedMemory.of(times.plan(), rank);
    var table = new Table("memory of rank " + rank, "size", "more than planned");
    table.row("symmetric arena", Units.bytes(planned.symmetric()), "");
    table.row("local arena", Units.bytes(planned.local()), "");
    table.row("inputs outside of arenas", Units.bytes(planned.inputs()), "");
    table.row("outputs outside of arenas", Units.bytes(planned.outputs()), "");
    table.row("planned", Units.bytes(planned.total()), "");
    if (!times.inUse().isEmpty()) {
      memory(table, "in use, by the driver's count", times.inUse().get(rank), planned);
    }
    for (var row : pytorch) {
      memory(table, label(row) + ": peak allocated", row.peakAllocated(), planned);
      memory(table, label(row) + ": peak reserved", row.peakReserved(), planned);
      memory(table, label(row) + ": in use", row.inUse(), planned);
    }
    out.append(table.render()).append('\n');
  }

  private static void memory(Table table, String what, long bytes, PlannedMemory planned) {
    long more = bytes - planned.total();
    table.row(what, Units.bytes(bytes), (more < 0 ? "-" : "") + Units.bytes(Math.abs(more)));
  }

  private void communication() {
    var found = times.communication(rank);
    if (steps.stream().anyMatch(step -> step.traffic().isPresent())) {
      out.append(
          String.format(
              Locale.ROOT,
              "collectives of rank %s: %.1f µs, of which %.1f exposed (no other step ran); %.1f"
                  + " waiting for peers\n\n",
              rank,
              found.total(),
              found.exposed(),
              found.waited()));
    }
  }

  private void steps() {
    var table =
        new Table(
            "step",
            "does",
            "variant",
            "stream",
            "µs",
            "of time",
            "predicted",
            "size",
            "MFLOP",
            "of roof",
            "limit",
            "waited",
            "kernel");
    for (var step : steps) {
      var bound = step.work().flatMap(times.roof()::bound);
      table.row(
          step.activity().label(),
          step.what(),
          step.traffic().map(Traffic::variant).orElse(""),
          step.activity().stream().text(),
          number(MICROS, step.activity().micros()),
          share(step.activity().micros(), sum),
          number(MICROS, step.predicted()),
          Units.bytes(step.bytes()),
          step.work().map(work -> megaflops(work.flops())).orElse(""),
          ofRoof(
              bound.stream().mapToDouble(Roof.Bound::micros).findFirst(), step.activity().micros()),
          bound.map(roof -> roof.limit().text()).orElse(""),
          step.traffic().map(traffic -> number(MICROS, traffic.waited())).orElse(""),
          step.activity().kernel());
    }
    out.append("steps of rank %s; %s\n".formatted(rank, times.method()))
        .append(table.render())
        .append('\n');
  }

  private void kinds() {
    var table =
        new Table("kind", "steps", "µs", "of time", "predicted", "size", "MFLOP", "of roof");
    for (var kind : KindSum.byKind(steps, times.roof())) {
      row(table, kind);
    }
    row(
        table,
        steps.stream()
            .map(step -> KindSum.of("all", step, times.roof()))
            .reduce(KindSum::plus)
            .orElseThrow());
    out.append(table.render());
  }

  private void row(Table table, KindSum kind) {
    table.row(
        kind.kind(),
        Integer.toString(kind.steps()),
        number(MICROS, kind.micros()),
        share(kind.micros(), sum),
        number(MICROS, kind.predicted()),
        Units.bytes(kind.bytes()),
        megaflops(kind.flops()),
        ofRoof(kind.roof(), kind.micros()));
  }

  private static String megaflops(double flops) {
    return flops == 0 ? "" : number("%.1f", flops / 1e6);
  }

  private static String ofRoof(OptionalDouble roof, double micros) {
    return roof.isPresent() ? share(roof.getAsDouble(), micros) : "";
  }

  private static String share(double part, double whole) {
    return whole > 0 ? number("%.1f%%", 100 * part / whole) : "";
  }

  private static String number(String format, double value) {
    return String.format(Locale.ROOT, format, value);
  }
}
