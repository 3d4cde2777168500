package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.CurveFit.Sample;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Compute;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Target.Barrier;
import dev.symplan.planner.machine.Target.Contention;
import dev.symplan.planner.machine.Target.Knots;
import dev.symplan.planner.machine.Target.Network;
import dev.symplan.planner.machine.Variant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/** Fits all figures of a target except its curves. */
final class MachineFit {

  /** A slowdown beyond that would mean that nothing is gained by running side by side. */
  private static final double MAX_KEPT = 0.99;

  private final Measurements points;
  private final Target base;
  private final Map<String, String> sources = new LinkedHashMap<>();

  private MachineFit(Measurements points, Target base) {
    this.points = points;
    this.base = base;
  }

  /**
   * {@return the base with the figures that the points give, and without curves}
   *
   * <p>Copy engines start at once, if the points do not say when.
   */
  static Target fit(Measurements points, Target base, String name) {
    return new MachineFit(points, base).target(name);
  }

  private Target target(String name) {
    if (base.name().equals(name)) {
      sources.putAll(base.sources());
    }
    double launch =
        figure("launch_us", Subject.Launch.class::isInstance, Point::micros)
            .orElse(base.launchMicros());
    var memory =
        figure(
            "memory_gbps",
            Subject.Copy.class::isInstance,
            p -> p.subject() instanceof Subject.Copy(long b) ? 2e-3 * b / after(launch, p) : 0);
    var matrix =
        figure(
            "matrix_tflops",
            Subject.Gemm.class::isInstance,
            p -> p.subject() instanceof Subject.Gemm(double f) ? 1e-6 * f / after(launch, p) : 0);
    var barrier = barrier(launch);
    var start = figure("copy_engine_us", Subject.CopyEngineStart.class::isInstance, Point::micros);
    var onSms = contention("sm_contention", false, base.smOverlap());
    var onEngines = contention("copy_engine_contention", true, base.copyEngineOverlap());
    return new Target(
        name,
        base.gpus(),
        base.hostsPerDomain(),
        base.link(),
        network(launch),
        base.hostLink(),
        memory.orElse(base.memoryRate()),
        new Compute(
            matrix.orElse(base.compute().matrixRate()),
            base.compute().matrixF32Rate(),
            base.compute().multiprocessors(),
            base.compute().kernelMicros()),
        launch,
        barrier,
        start.orElse(0),
        onSms,
        onEngines,
        base.workspaceBytes(),
        base.multicast(),
        base.copyEngines(),
        base.nccl(),
        ImmutableMap.copyOf(sources),
        ImmutableTable.of());
  }

  private static double after(double launch, Point point) {
    return Math.max(1e-3, point.micros() - launch);
  }

  /** The median over the points, if there are any. */
  private OptionalDouble figure(
      String field, Predicate<Subject> wanted, ToDoubleFunction<Point> figure) {
    var found = points.of(wanted);
    if (found.isEmpty()) {
      return OptionalDouble.empty();
    }
    sources.put(field, points.source(found));
    var values = found.stream().map(point -> figure.applyAsDouble(point)).toList();
    return OptionalDouble.of(CurveFit.round(Measurements.median(values)));
  }

  /** A time of NCCL between hosts, divided by its number of hops. */
  private record Hop(Kind kind, Sample sample) {
    static Optional<Hop> of(Point point, double launch) {
      if (!(point.subject() instanceof Subject.BetweenHosts(var kind, long bytes, var reach))) {
        return Optional.empty();
      }
      int hops = CostModel.hops(kind, reach.domains());
      double sent = CostModel.railBytes(kind, Variant.NCCL, bytes, reach);
      return Optional.of(new Hop(kind, new Sample(sent / hops, after(launch, point) / hops)));
    }
  }

  /**
   * A line through the times of all kinds for one hop, and a curve through those of each. Points of
   * one size alone do not tell rate and latency apart.
   */
  private Network network(double launch) {
    var found = points.of(Subject.BetweenHosts.class::isInstance);
    var hops = found.stream().flatMap(point -> Hop.of(point, launch).stream()).toList();
    var samples = hops.stream().map(Hop::sample).collect(ImmutableList.toImmutableList());
    if (sizes(samples) < 2) {
      return base.network();
    }
    var line = LineFit.fit(samples);
    sources.put("network", points.source(found));
    double rate =
        line.slope() > 0 ? CurveFit.round(1 / (1e3 * line.slope())) : base.network().rate();
    var curves = ImmutableMap.<Kind, Knots>builder();
    for (var kind : Kind.values()) {
      var own =
          hops.stream()
              .filter(hop -> hop.kind() == kind)
              .map(Hop::sample)
              .collect(ImmutableList.toImmutableList());
      if (sizes(own) > 1) {
        curves.put(kind, CurveFit.fit(medians(own), 0, rate));
      }
    }
    return new Network(
        rate, CurveFit.round(line.start()), rate, base.network().windows(), curves.buildOrThrow());
  }

  private static long sizes(List<Sample> samples) {
    return samples.stream().mapToDouble(Sample::wire).distinct().count();
  }

  /** One sample of each size, by rising bytes. */
  private static ImmutableList<Sample> medians(List<Sample> samples) {
    return samples.stream()
        .collect(
            Collectors.groupingBy(
                Sample::wire,
                TreeMap::new,
                Collectors.mapping(Sample::micros, Collectors.toList())))
        .entrySet()
        .stream()
        .map(size -> new Sample(size.getKey(), Measurements.median(size.getValue())))
        .collect(ImmutableList.toImmutableList());
  }

  /** One world size scales the base's barrier; two or more give a line. */
  private Barrier barrier(double launch) {
    var measured = points.barriers();
    if (measured.isEmpty()) {
      return boundedBarrier(launch);
    }
    sources.put("barrier", points.source(points.of(Subject.Barrier.class::isInstance)));
    if (measured.size() > 1) {
      var samples = ImmutableList.<Sample>builder();
      measured.forEach((ranks, micros) -> samples.add(new Sample(ranks - 2.0, micros)));
      return LineFit.barrier(samples.build());
    }
    double known = base.barrier().micros(measured.firstKey());
    double micros = measured.values().iterator().next();
    return known > 0 ? scaled(micros / known) : new Barrier(CurveFit.round(micros), 0);
  }

  /** The base's barrier, at most half of the fastest collective that has two of them. */
  private Barrier boundedBarrier(double launch) {
    var costs = new CostModel(base);
    double most = 1;
    for (var entry : points.collectives().entrySet()) {
      var key = entry.getKey();
      double both = 2 * costs.barrierMicros(key.variant(), key.ranks());
      double fastest = entry.getValue().values().stream().mapToDouble(v -> v).min().orElse(0);
      if (both > 0 && both > fastest - launch) {
        most = Math.min(most, Math.max(0, fastest - launch) / both / 2);
      }
    }
    return scaled(most);
  }

  private Barrier scaled(double factor) {
    return new Barrier(
        CurveFit.round(base.barrier().base() * factor),
        CurveFit.round(base.barrier().perRank() * factor));
  }

  /**
   * Compute does not slow copy engines; of collectives on SMs the total says only what both lose
   * together, so each is given the same share.
   */
  private Contention contention(String field, boolean copyEngine, Contention known) {
    var kept =
        figure(
            field,
            subject ->
                subject instanceof Subject.Together t
                    && (copyEngine ? t.byCopyEngines() : t.onSms()),
            MachineFit::share);
    if (kept.isEmpty()) {
      return known;
    }
    double share = Math.clamp(kept.getAsDouble(), 0, MAX_KEPT);
    return copyEngine
        ? new Contention(CurveFit.round(share / (1 - share)), 0)
        : new Contention(share, share);
  }

  /** How much of the shorter of both is not hidden. */
  private static double share(Point point) {
    return point.subject() instanceof Subject.Together together
        ? (point.micros() - Math.max(together.computeMicros(), together.transferMicros()))
            / Math.min(together.computeMicros(), together.transferMicros())
        : 0;
  }
}
