package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Target;
import dev.symplan.planner.Target.Barrier;
import dev.symplan.planner.Target.Contention;
import dev.symplan.planner.Target.Curve;
import dev.symplan.planner.Target.Protocol;
import dev.symplan.planner.Variant;
import dev.symplan.planner.calibrate.CurveFit.Sample;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.report.Units;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A target fitted to measured points: what they do not tell is the base's.
 *
 * @param target what was found
 * @param fits how well each curve fits
 * @param sizes what was measured in several variants
 */
public record Calibration(
    Target target, ImmutableList<Fit> fits, ImmutableList<MeasuredSize> sizes) {

  /**
   * How well a curve fits its points.
   *
   * @param medianError relative
   * @param maxError relative
   */
  public record Fit(
      Kind kind, Variant variant, int ranks, int points, double medianError, double maxError) {}

  /**
   * A collective of one size that was measured in several variants.
   *
   * @param fastest the variant that was measured fastest
   * @param predicted the variant that the target predicts to be, of those measured
   * @param regret how much longer the predicted one was measured to take, relative
   */
  public record MeasuredSize(
      Kind kind, int ranks, long bytes, Variant fastest, Variant predicted, double regret) {}

  /** Points of one curve, by bytes: the median where there are several. */
  private record Key(Kind kind, Variant variant, int ranks) {
    static final Comparator<Key> ORDER =
        Comparator.comparing(Key::kind).thenComparing(Key::variant).thenComparing(Key::ranks);
  }

  /** {@return the share of the sizes in which the variant measured fastest is predicted so} */
  public double agreement() {
    long same = sizes.stream().filter(size -> size.fastest() == size.predicted()).count();
    return sizes.isEmpty() ? 1 : (double) same / sizes.size();
  }

  /**
   * {@return the target that fits the points}
   *
   * @param base gives what the points do not
   * @param name the new target's
   */
  public static Calibration of(Points points, Target base, String name) {
    return new Fitter(points, base, name).run();
  }

  /** Fits one target. */
  private static final class Fitter {
    private final Points points;
    private final Target base;
    private final String name;
    private final CostModel costsOfBase;
    private final Map<String, String> sources = new LinkedHashMap<>();
    private final Map<Key, TreeMap<Long, Double>> measured = new TreeMap<>(Key.ORDER);

    Fitter(Points points, Target base, String name) {
      this.points = points;
      this.base = base;
      this.name = name;
      this.costsOfBase = new CostModel(base);
    }

    Calibration run() {
      var micros = new TreeMap<Key, TreeMap<Long, List<Double>>>(Key.ORDER);
      for (var point : points.list()) {
        if (point.subject() instanceof Subject.Collective c) {
          micros
              .computeIfAbsent(new Key(c.kind(), c.variant(), c.ranks()), k -> new TreeMap<>())
              .computeIfAbsent(c.bytes(), b -> new ArrayList<>())
              .add(point.micros());
        }
      }
      micros.forEach(
          (key, bySize) -> {
            var medians = new TreeMap<Long, Double>();
            bySize.forEach((bytes, times) -> medians.put(bytes, median(times)));
            measured.put(key, medians);
          });
      var machine = machine();
      var curves = curves(machine);
      double start = copyEngineStart(curves);
      var target = withCurves(machine, curves, start);
      return new Calibration(target, fits(target), sizes(target));
    }

    /** The target with the figures that are no curves, and with no start of copy engines. */
    private Target machine() {
      if (base.name().equals(name)) {
        sources.putAll(base.sources());
      }
      double launch =
          figure(Subject.Launch.class, "launch_us", (launches, micros) -> micros)
              .orElse(base.launchMicros());
      return new Target(
          name,
          base.gpus(),
          base.link(),
          figure(
                  Subject.Copy.class,
                  "memory_gbps",
                  (copy, micros) -> 2.0 * copy.bytes() / Math.max(1e-3, micros - launch) / 1000)
              .orElse(base.memoryRate()),
          figure(
                  Subject.Gemm.class,
                  "matrix_tflops",
                  (gemm, micros) -> gemm.flops() / Math.max(1e-3, micros - launch) / 1e6)
              .orElse(base.matrixRate()),
          launch,
          barrier(launch),
          0,
          contention(false, "sm_contention", base.smOverlap()),
          contention(true, "copy_engine_contention", base.copyEngineOverlap()),
          base.multicast(),
          base.copyEngines(),
          base.nccl(),
          ImmutableMap.of(),
          ImmutableTable.of());
    }

    private interface Figure<S> {
      double of(S subject, double micros);
    }

    private <S extends Subject> OptionalDouble figure(
        Class<S> type, String field, Figure<S> figure) {
      var found = pointsOf(type);
      if (found.isEmpty()) {
        return OptionalDouble.empty();
      }
      sources.put(field, source(found));
      return OptionalDouble.of(
          CurveFit.round(
              median(
                  found.stream()
                      .map(p -> figure.of(type.cast(p.subject()), p.micros()))
                      .toList())));
    }

    private <S extends Subject> List<Point> pointsOf(Class<S> type) {
      return points.list().stream().filter(p -> type.isInstance(p.subject())).toList();
    }

    /** One world size scales the base's barrier; two or more give a line. */
    private Barrier barrier(double launch) {
      var found = pointsOf(Subject.Barrier.class);
      if (found.isEmpty()) {
        return boundedBarrier(launch);
      }
      sources.put("barrier", source(found));
      var bySize = new TreeMap<Integer, List<Double>>();
      for (var point : found) {
        if (point.subject() instanceof Subject.Barrier(int ranks)) {
          bySize.computeIfAbsent(ranks, r -> new ArrayList<>()).add(point.micros());
        }
      }
      if (bySize.size() == 1) {
        int ranks = bySize.firstKey();
        double known = base.barrier().micros(ranks);
        double micros = median(bySize.firstEntry().getValue());
        return known > 0
            ? new Barrier(
                CurveFit.round(base.barrier().base() * micros / known),
                CurveFit.round(base.barrier().perRank() * micros / known))
            : new Barrier(CurveFit.round(micros), 0);
      }
      var samples = ImmutableList.<Sample>builder();
      bySize.forEach((ranks, times) -> samples.add(new Sample(ranks - 2.0, median(times))));
      return CurveFit.straight(samples.build());
    }

    /** The base's barrier, made cheap enough for the fastest collective that has two of them. */
    private Barrier boundedBarrier(double launch) {
      double most = 1;
      for (var entry : measured.entrySet()) {
        double barriers =
            2 * costsOfBase.barrierMicros(entry.getKey().variant(), entry.getKey().ranks());
        if (barriers > 0) {
          double fastest = entry.getValue().values().stream().mapToDouble(v -> v).min().orElse(0);
          most = Math.min(most, Math.max(0, fastest - launch) / barriers);
        }
      }
      return most == 1
          ? base.barrier()
          : new Barrier(
              CurveFit.round(base.barrier().base() * most / 2),
              CurveFit.round(base.barrier().perRank() * most / 2));
    }

    /**
     * Copy engines lose nothing to compute; for collectives on SMs the total says only that both
     * lose, so it is shared evenly.
     */
    private Contention contention(boolean copyEngine, String field, Contention known) {
      var found =
          pointsOf(Subject.Together.class).stream()
              .filter(
                  p -> p.subject() instanceof Subject.Together t && t.copyEngine() == copyEngine)
              .toList();
      if (found.isEmpty()) {
        return known;
      }
      sources.put(field, source(found));
      double share =
          median(
              found.stream()
                  .map(
                      p ->
                          p.subject() instanceof Subject.Together t
                              ? (p.micros() - t.computeMicros())
                                  / Math.min(t.computeMicros(), t.transferMicros())
                              : 0.0)
                  .toList());
      double kept = Math.clamp(share, 0, 0.99);
      return copyEngine
          ? new Contention(CurveFit.round(kept / (1 - kept)), 0)
          : new Contention(CurveFit.round(kept), CurveFit.round(kept));
    }

    private Map<Key, Curve> curves(Target machine) {
      var costs = new CostModel(machine);
      double rate = Math.min(base.link().sendRate(), base.link().receiveRate());
      var curves = new TreeMap<Key, Curve>(Key.ORDER);
      measured.forEach(
          (key, bySize) -> {
            var byWire = new TreeMap<Double, Double>();
            bySize.forEach(
                (bytes, micros) ->
                    byWire.put(
                        CostModel.wireBytes(key.kind(), key.variant(), bytes, key.ranks()),
                        micros));
            var samples = ImmutableList.<Sample>builder();
            byWire.forEach((wire, micros) -> samples.add(new Sample(wire, micros)));
            double fixed = costs.fixedMicros(key.variant(), key.ranks());
            var fitted = CurveFit.fit(samples.build(), fixed, rate);
            double perRank =
                base.curve(key.kind(), key.variant(), key.ranks())
                    .map(Curve::perRank)
                    .orElse(base.link().latencyMicros());
            curves.put(
                key,
                new Curve(
                    key.ranks(),
                    fitted.floor(),
                    perRank,
                    fitted.protocols(),
                    true,
                    curveSource(key, bySize)));
          });
      return curves;
    }

    private String curveSource(Key key, TreeMap<Long, Double> bySize) {
      var found =
          points.list().stream()
              .filter(
                  p ->
                      p.subject() instanceof Subject.Collective c
                          && new Key(c.kind(), c.variant(), c.ranks()).equals(key))
              .toList();
      return "%s, %s to %s"
          .formatted(source(found), Units.bytes(bySize.firstKey()), Units.bytes(bySize.lastKey()));
    }

    private String source(List<Point> found) {
      return "%s: %d %s%s%s"
          .formatted(
              points.name(),
              found.size(),
              found.size() == 1 ? "point" : "points",
              words(found, Point::gpu, " on "),
              words(found, Point::date, ", "));
    }

    private static String words(List<Point> found, Function<Point, String> of, String before) {
      var words = found.stream().map(of).filter(w -> !w.isEmpty()).distinct().sorted().toList();
      return words.isEmpty() ? "" : before + String.join(", ", words);
    }

    /** What all curves of copy engines have in common, if it was not measured by itself. */
    private double copyEngineStart(Map<Key, Curve> curves) {
      var single =
          figure(Subject.CopyEngineStart.class, "copy_engine_us", (start, micros) -> micros);
      if (single.isPresent()) {
        return single.getAsDouble();
      }
      var own =
          curves.entrySet().stream()
              .filter(entry -> entry.getKey().variant() == Variant.COPY_ENGINE)
              .toList();
      if (own.isEmpty()) {
        return base.copyEngineMicros();
      }
      sources.put(
          "copy_engine_us", points.name() + ": the least latency of the copy_engine curves");
      return own.stream().mapToDouble(entry -> intercept(entry.getValue())).min().orElse(0);
    }

    private static double intercept(Curve curve) {
      return Math.max(curve.floor(), curve.protocols().getFirst().latency());
    }

    private Target withCurves(Target machine, Map<Key, Curve> fitted, double start) {
      var table = ImmutableTable.<Kind, Variant, ImmutableList<Curve>>builder();
      for (var kind : Kind.values()) {
        for (var variant : Variant.values()) {
          var byRanks = new TreeMap<Integer, Curve>();
          for (var curve :
              Optional.ofNullable(base.curves().get(kind, variant)).orElse(ImmutableList.of())) {
            byRanks.put(
                curve.ranks(), base.name().equals(name) ? curve : curve.carriedOver(base.name()));
          }
          fitted.forEach(
              (key, curve) -> {
                if (key.kind() == kind && key.variant() == variant) {
                  byRanks.put(
                      key.ranks(), variant == Variant.COPY_ENGINE ? less(curve, start) : curve);
                }
              });
          if (!byRanks.isEmpty()) {
            table.put(kind, variant, ImmutableList.copyOf(byRanks.values()));
          }
        }
      }
      return new Target(
          machine.name(),
          machine.gpus(),
          machine.link(),
          machine.memoryRate(),
          machine.matrixRate(),
          machine.launchMicros(),
          machine.barrier(),
          start,
          machine.smOverlap(),
          machine.copyEngineOverlap(),
          machine.multicast(),
          machine.copyEngines(),
          machine.nccl(),
          ImmutableMap.copyOf(sources),
          table.buildOrThrow());
    }

    private static Curve less(Curve curve, double start) {
      return new Curve(
          curve.ranks(),
          CurveFit.round(Math.max(0, curve.floor() - start)),
          curve.perRank(),
          curve.protocols().stream()
              .map(p -> new Protocol(CurveFit.round(Math.max(0, p.latency() - start)), p.rate()))
              .collect(ImmutableList.toImmutableList()),
          curve.measured(),
          curve.source());
    }

    private ImmutableList<Fit> fits(Target target) {
      var costs = new CostModel(target);
      var fits = ImmutableList.<Fit>builder();
      measured.forEach(
          (key, bySize) -> {
            var errors =
                bySize.entrySet().stream()
                    .map(
                        e ->
                            Math.abs(
                                costs.transferMicros(
                                            key.kind(), key.variant(), e.getKey(), key.ranks())
                                        / e.getValue()
                                    - 1))
                    .toList();
            fits.add(
                new Fit(
                    key.kind(),
                    key.variant(),
                    key.ranks(),
                    errors.size(),
                    median(errors),
                    errors.stream().mapToDouble(e -> e).max().orElse(0)));
          });
      return fits.build();
    }

    private ImmutableList<MeasuredSize> sizes(Target target) {
      var costs = new CostModel(target);
      var sizes = ImmutableList.<MeasuredSize>builder();
      record Group(Kind kind, int ranks) {}
      var groups =
          measured.keySet().stream()
              .map(key -> new Group(key.kind(), key.ranks()))
              .collect(Collectors.toCollection(LinkedHashSet::new));
      for (var group : groups) {
        var bytes = new TreeSet<Long>();
        measured.forEach(
            (key, bySize) -> {
              if (key.kind() == group.kind() && key.ranks() == group.ranks()) {
                bytes.addAll(bySize.keySet());
              }
            });
        for (long size : bytes) {
          var times = new EnumMap<Variant, Double>(Variant.class);
          var predictions = new EnumMap<Variant, Double>(Variant.class);
          measured.forEach(
              (key, bySize) -> {
                if (key.kind() == group.kind()
                    && key.ranks() == group.ranks()
                    && bySize.containsKey(size)) {
                  times.put(key.variant(), bySize.get(size));
                  predictions.put(
                      key.variant(),
                      costs.transferMicros(key.kind(), key.variant(), size, key.ranks()));
                }
              });
          if (times.size() > 1) {
            var fastest = least(times);
            var predicted = least(predictions);
            double regret = times.get(predicted) / times.get(fastest) - 1;
            sizes.add(
                new MeasuredSize(group.kind(), group.ranks(), size, fastest, predicted, regret));
          }
        }
      }
      return sizes.build();
    }

    private static Variant least(Map<Variant, Double> times) {
      return times.entrySet().stream().min(Map.Entry.comparingByValue()).orElseThrow().getKey();
    }

    private static double median(List<Double> values) {
      var sorted = values.stream().mapToDouble(v -> v).toArray();
      Arrays.sort(sorted);
      int middle = sorted.length / 2;
      return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
  }
}
