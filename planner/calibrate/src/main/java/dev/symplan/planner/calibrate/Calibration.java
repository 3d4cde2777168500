package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.CurveFit.Sample;
import dev.symplan.planner.calibrate.Measurements.Key;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Target.Curve;
import dev.symplan.planner.machine.Target.Knot;
import dev.symplan.planner.machine.Target.Knots;
import dev.symplan.planner.machine.Target.Protocols;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * A target fitted to measured points; figures that they do not determine are the base's.
 *
 * @param target the calibrated target
 * @param fits how well each curve fits
 * @param sizes the sizes that were measured in several variants
 */
public record Calibration(
    Target target, ImmutableList<Fit> fits, ImmutableList<MeasuredSize> sizes) {

  /**
   * The fit of a curve to its points.
   *
   * @param meanError relative
   * @param maxError relative
   * @param heldOutError relative, on average, of what a curve through the other points says of each
   *     size but the smallest and the largest; empty if there are no four points
   */
  public record Fit(
      Kind kind,
      Variant variant,
      int ranks,
      int points,
      double meanError,
      double maxError,
      OptionalDouble heldOutError) {}

  /**
   * A collective of one size that was measured in several variants.
   *
   * @param fastest the variant that was measured fastest
   * @param predicted the variant that the target predicts to be, of those measured
   * @param regret how much longer the predicted one was measured to take, relative
   */
  public record MeasuredSize(
      Kind kind, int ranks, long bytes, Variant fastest, Variant predicted, double regret) {}

  /** {@return the share of the sizes in which the variant measured fastest is predicted so} */
  public double agreement() {
    return share(size -> size.fastest() == size.predicted());
  }

  /** {@return the share of the sizes in which what is predicted costs no more than so much} */
  public double within(double regret) {
    return share(size -> size.regret() <= regret);
  }

  private double share(Predicate<MeasuredSize> good) {
    return sizes.isEmpty() ? 1 : (double) sizes.stream().filter(good).count() / sizes.size();
  }

  /**
   * {@return the target that fits the points; the same for the same points in any order}
   *
   * @param base gives what the points do not
   * @param name the new target's
   */
  public static Calibration of(Points points, Target base, String name) {
    var measured = new Measurements(points);
    var machine = MachineFit.fit(measured, base, name);
    var curves = curves(measured, base, machine);
    var target = withCurves(machine, base, curves, measured.sourceOfCopyEngines());
    return new Calibration(target, fits(measured, target), sizes(measured, target));
  }

  private static SortedMap<Key, Curve> curves(Measurements measured, Target base, Target machine) {
    var costs = new CostModel(machine);
    double rate = Math.min(base.link().sendRate(), base.link().receiveRate());
    var curves = new TreeMap<Key, Curve>(Key.ORDER);
    measured
        .collectives()
        .forEach(
            (key, bySize) ->
                curves.put(
                    key,
                    new Curve(
                        key.ranks(),
                        base.curve(key.kind(), key.variant(), key.ranks())
                            .map(Curve::perRank)
                            .orElse(base.link().latencyMicros()),
                        CurveFit.fit(
                            samples(key, bySize),
                            costs.fixedMicros(key.variant(), key.ranks()),
                            rate),
                        true,
                        "%s, %s to %s"
                            .formatted(
                                measured.sourceOf(key),
                                Units.bytes(bySize.firstKey()),
                                Units.bytes(bySize.lastKey())))));
    return curves;
  }

  private static ImmutableList<Sample> samples(Key key, SortedMap<Long, Double> bySize) {
    return bySize.entrySet().stream()
        .map(entry -> new Sample(wire(key, entry.getKey()), entry.getValue()))
        .collect(ImmutableList.toImmutableList());
  }

  private static double wire(Key key, long bytes) {
    return VariantSpec.of(key.kind(), key.variant()).wire().bytes(bytes, key.ranks());
  }

  private static Target withCurves(
      Target machine, Target base, SortedMap<Key, Curve> fitted, String start) {
    boolean same = base.name().equals(machine.name());
    var table = ImmutableTable.<Kind, Variant, ImmutableList<Curve>>builder();
    // All curves of copy engines contain the time to start them, if it was not measured by itself.
    boolean startKnown = machine.copyEngineMicros() > 0;
    var engines =
        fitted.entrySet().stream()
            .filter(entry -> entry.getKey().variant() == Variant.COPY_ENGINE)
            .map(Map.Entry::getValue)
            .toList();
    double common =
        startKnown
            ? 0
            : engines.stream()
                .mapToDouble(Calibration::start)
                .min()
                .orElse(base.copyEngineMicros());
    for (var kind : Kind.values()) {
      for (var variant : Variant.values()) {
        var byRanks = new TreeMap<Integer, Curve>();
        for (var curve :
            Optional.ofNullable(base.curves().get(kind, variant)).orElse(ImmutableList.of())) {
          byRanks.put(curve.ranks(), same ? curve : curve.carriedOver(base.name()));
        }
        fitted.forEach(
            (key, curve) -> {
              if (key.kind() == kind && key.variant() == variant) {
                byRanks.put(
                    key.ranks(), variant == Variant.COPY_ENGINE ? less(curve, common) : curve);
              }
            });
        if (!byRanks.isEmpty()) {
          table.put(kind, variant, ImmutableList.copyOf(byRanks.values()));
        }
      }
    }
    var sources = new LinkedHashMap<>(machine.sources());
    if (!startKnown && !engines.isEmpty()) {
      sources.put("copy_engine_us", start + ", the least of what the smallest messages take");
    }
    return new Target(
        machine.name(),
        machine.gpus(),
        machine.hostsPerDomain(),
        machine.link(),
        machine.network(),
        machine.hostLink(),
        machine.memoryRate(),
        machine.compute(),
        machine.launchMicros(),
        machine.barrier(),
        startKnown ? machine.copyEngineMicros() : common,
        machine.smOverlap(),
        machine.copyEngineOverlap(),
        machine.workspaceBytes(),
        machine.multicast(),
        machine.copyEngines(),
        machine.nccl(),
        ImmutableMap.copyOf(sources),
        table.buildOrThrow());
  }

  /** The time of the smallest message. */
  private static double start(Curve curve) {
    return curve.shape().micros(0);
  }

  private static Curve less(Curve curve, double start) {
    return switch (curve.shape()) {
      case Protocols _ -> throw new IllegalStateException("only fitted curves have points");
      case Knots(var list, double rate) ->
          new Curve(
              curve.ranks(),
              curve.perRank(),
              new Knots(
                  list.stream()
                      .map(
                          knot ->
                              new Knot(
                                  knot.wireBytes(),
                                  CurveFit.round(Math.max(0, knot.micros() - start))))
                      .collect(ImmutableList.toImmutableList()),
                  rate),
              curve.measured(),
              curve.source());
    };
  }

  private static ImmutableList<Fit> fits(Measurements measured, Target target) {
    var costs = new CostModel(target);
    var fits = ImmutableList.<Fit>builder();
    measured
        .collectives()
        .forEach(
            (key, bySize) -> {
              var errors =
                  bySize.entrySet().stream()
                      .mapToDouble(
                          e -> Math.abs(predicted(costs, key, e.getKey()) / e.getValue() - 1))
                      .summaryStatistics();
              fits.add(
                  new Fit(
                      key.kind(),
                      key.variant(),
                      key.ranks(),
                      bySize.size(),
                      errors.getAverage(),
                      errors.getMax(),
                      heldOut(samples(key, bySize))));
            });
    return fits.build();
  }

  private static OptionalDouble heldOut(ImmutableList<Sample> samples) {
    if (samples.size() < 4) {
      return OptionalDouble.empty();
    }
    return IntStream.range(1, samples.size() - 1)
        .mapToDouble(
            i -> {
              var others =
                  ImmutableList.<Sample>builder()
                      .addAll(samples.subList(0, i))
                      .addAll(samples.subList(i + 1, samples.size()))
                      .build();
              var sample = samples.get(i);
              // No rate is asked for: the sample lies between others.
              var curve = CurveFit.fit(others, 0, 1);
              return Math.abs(curve.micros(sample.wire()) / sample.micros() - 1);
            })
        .average();
  }

  private static double predicted(CostModel costs, Key key, long bytes) {
    return costs.transferMicros(key.kind(), key.variant(), bytes, key.ranks());
  }

  private static ImmutableList<MeasuredSize> sizes(Measurements measured, Target target) {
    record Size(Kind kind, int ranks, long bytes) {}
    var times = new LinkedHashMap<Size, EnumMap<Variant, Double>>();
    measured
        .collectives()
        .forEach(
            (key, bySize) ->
                bySize.forEach(
                    (bytes, micros) ->
                        times
                            .computeIfAbsent(
                                new Size(key.kind(), key.ranks(), bytes),
                                size -> new EnumMap<>(Variant.class))
                            .put(key.variant(), micros)));
    var costs = new CostModel(target);
    var sizes = ImmutableList.<MeasuredSize>builder();
    times.forEach(
        (size, byVariant) -> {
          if (byVariant.size() > 1) {
            var predictions = new EnumMap<Variant, Double>(Variant.class);
            for (var variant : byVariant.keySet()) {
              var key = new Key(size.kind(), variant, size.ranks());
              predictions.put(variant, predicted(costs, key, size.bytes()));
            }
            var fastest = least(byVariant);
            var predicted = least(predictions);
            double regret =
                byVariant.getOrDefault(predicted, 0.0) / byVariant.getOrDefault(fastest, 1.0) - 1;
            sizes.add(
                new MeasuredSize(
                    size.kind(), size.ranks(), size.bytes(), fastest, predicted, regret));
          }
        });
    return sizes.build();
  }

  private static Variant least(Map<Variant, Double> times) {
    return times.entrySet().stream().min(Map.Entry.comparingByValue()).orElseThrow().getKey();
  }
}
