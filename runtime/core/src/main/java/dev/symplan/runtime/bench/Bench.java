package dev.symplan.runtime.bench;

import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.calibrate.Point;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * Measures plans as they run: with their barriers, in the steady state, each in a session of its
 * own.
 *
 * @param backend the backend that runs them
 * @param options of the sessions; with a world, each process has a rank, and all do the same
 * @param target whose planner makes the plans, and says which variants there are
 * @param hosts the host of each rank
 * @param measurements of each time
 * @param device the device that points name
 * @param date the date that points name
 * @param found takes each point at once, so that what was measured is not lost if a later one fails
 * @param failed takes what could not be measured, and why
 */
public record Bench(
    Backend backend,
    SessionOptions options,
    Target target,
    Hosts hosts,
    int measurements,
    String device,
    String date,
    Consumer<Point> found,
    BiConsumer<String, RunException> failed) {

  /** The predicted time of one measurement. */
  private static final double LONG_ENOUGH = 10_000;

  private static final int MAX_RUNS = 100;

  /** Products are measured in so many runs each: they take long. */
  private static final int PRODUCT_RUNS = 10;

  private int ranks() {
    return hosts.ranks();
  }

  /** The host's time for a run. */
  public record Step(Timing wall, Timing device) {}

  /** A product and the all_reduce of its result, and what becomes of it in pieces. */
  public record Chunks(Timing product, Timing whole, Timing chunked, int pieces) {}

  /**
   * Measures every variant of a collective that there is; between hosts, NCCL.
   *
   * @param sizes bytes of one rank's operand; rounded down to whole elements for each rank
   */
  public void collectives(Kind kind, DType dtype, List<Long> sizes, Predicate<Variant> wanted) {
    var bySize = new TreeMap<Variant, Map<Long, Integer>>();
    for (long bytes : sizes) {
      var program = BenchPrograms.collective(kind, dtype, bytes, ranks());
      for (var verdict : BenchPrograms.verdicts(BenchPrograms.plan(program, target, hosts))) {
        if (verdict.reason().eligible()
            && wanted.test(verdict.variant())
            && (reach().isWithinDomain() || verdict.variant() == Variant.NCCL)) {
          bySize
              .computeIfAbsent(verdict.variant(), _ -> new LinkedHashMap<>())
              .put(bytes, runs(verdict));
        }
      }
    }
    bySize.forEach(
        (variant, runs) -> {
          // Where barriers are the plan's, those between two collectives may be left out.
          boolean apart = variant.hasPlannedBarriers();
          for (var group : apart ? each(runs.keySet()) : together(runs.keySet())) {
            measure(kind, variant, dtype, group, runs);
          }
        });
  }

  /** How the ranks of the only group lie; those of one process are on one host. */
  private Reach reach() {
    return options.world().isEmpty()
        ? Reach.within(ranks())
        : Topology.ofHosts(hosts, target).reach(ProcessGroup.world("g", ranks()));
  }

  private Subject subject(Kind kind, Variant variant, long bytes) {
    return reach().isWithinDomain()
        ? new Subject.Collective(kind, variant, bytes, ranks())
        : new Subject.BetweenHosts(kind, bytes, reach());
  }

  private static List<List<Long>> each(Set<Long> sizes) {
    return sizes.stream().map(List::of).toList();
  }

  /** As few groups as there can be, none much larger than the largest size. */
  private static List<List<Long>> together(Set<Long> sizes) {
    var groups = new ArrayList<List<Long>>();
    long largest = Collections.max(sizes);
    long sum = largest;
    for (long bytes : sizes) {
      if (sum + bytes > largest) {
        groups.add(new ArrayList<>());
        sum = 0;
      }
      groups.getLast().add(bytes);
      sum += bytes;
    }
    return groups;
  }

  /** In one session, as NCCL takes a second to make its communicators. */
  private void measure(
      Kind kind, Variant variant, DType dtype, List<Long> sizes, Map<Long, Integer> runs) {
    var what = "%s %s of %s bytes".formatted(kind, variant.text(), sizes);
    try (var session =
        open(
            BenchPrograms.planApart(
                BenchPrograms.collectives(kind, dtype, sizes, ranks()),
                target,
                hosts,
                kind,
                variant))) {
      session.run();
      for (int i = 0; i < sizes.size(); i++) {
        long bytes = sizes.get(i);
        int times = runs.getOrDefault(bytes, 1);
        var label = BenchPrograms.label(i);
        measure(
            "%s %s of %s".formatted(kind, variant.text(), Units.count(bytes, "byte")),
            subject(kind, variant, bytes),
            dtype,
            () ->
                sizes.size() == 1
                    ? session.time(times, measurements)
                    : session.time(label, times, measurements));
      }
    } catch (RunException e) {
      failed.accept(what, e);
    }
  }

  private static int runs(Verdict verdict) {
    return (int) Math.clamp(LONG_ENOUGH / Math.max(1e-3, verdict.totalMicros()), 2, MAX_RUNS);
  }

  /**
   * Measures a product beside an all_gather, for each of its variants, and each of both alone.
   *
   * @param size of the square factors
   * @param bytes of one rank's operand of the all_gather
   */
  public void overlap(DType dtype, long size, long bytes, Predicate<Variant> wanted) {
    var compute = product(dtype, size);
    if (compute.isEmpty()) {
      return;
    }
    var gather = BenchPrograms.collective(Kind.ALL_GATHER, dtype, bytes, ranks());
    var both = BenchPrograms.productBesideGather(dtype, size, bytes, ranks());
    for (var verdict : BenchPrograms.verdicts(BenchPrograms.plan(gather, target))) {
      var variant = verdict.variant();
      if (!verdict.reason().eligible() || !wanted.test(variant)) {
        continue;
      }
      var what = "all_gather %s beside a product".formatted(variant.text());
      try {
        var alone =
            time(BenchPrograms.plan(gather, target, Kind.ALL_GATHER, variant), runs(verdict));
        measure(
            what,
            new Subject.Together(variant.text(), compute.getAsDouble(), alone.median()),
            dtype,
            () -> time(BenchPrograms.plan(both, target, Kind.ALL_GATHER, variant), PRODUCT_RUNS));
      } catch (RunException e) {
        failed.accept(what, e);
      }
    }
  }

  private OptionalDouble product(DType dtype, long size) {
    var last = new double[] {-1};
    measure(
        "a product of %s".formatted(size),
        new Subject.Gemm(2.0 * size * size * size),
        dtype,
        () -> {
          var timing =
              time(
                  BenchPrograms.plan(BenchPrograms.product(dtype, size, ranks()), target),
                  PRODUCT_RUNS);
          last[0] = timing.median();
          return timing;
        });
    return last[0] < 0 ? OptionalDouble.empty() : OptionalDouble.of(last[0]);
  }

  /** {@return a product whose result is reduced, whole and in pieces} */
  public Chunks chunks(DType dtype, long size) {
    var program = BenchPrograms.productThenReduce(dtype, size, ranks());
    var chunked = BenchPrograms.plan(program, target, true);
    return new Chunks(
        time(BenchPrograms.plan(BenchPrograms.product(dtype, size, ranks()), target), PRODUCT_RUNS),
        time(BenchPrograms.plan(program, target, false), PRODUCT_RUNS),
        time(chunked, PRODUCT_RUNS),
        chunked.rankPlans().getFirst().collectives().size());
  }

  /**
   * {@return the time from call to return of so many products and all_reduces, and the device's}
   */
  public Step step(int products, int runs) {
    try (var session = open(BenchPrograms.plan(BenchPrograms.chain(products, ranks()), target))) {
      return new Step(
          Timing.ofHost(runs, measurements, session::run), session.time(runs, measurements));
    }
  }

  /**
   * Measures what a target says of one device: what one more kernel costs, and the rates of copies
   * and products.
   *
   * @param size of the product's square factors
   * @param bytes of the copy
   */
  public void machine(DType dtype, long size, long bytes) {
    int kernels = 33;
    measure(
        "a launch",
        new Subject.Launch(),
        dtype,
        () -> {
          var one =
              time(BenchPrograms.planUnfused(BenchPrograms.kernels(1, ranks()), target), MAX_RUNS);
          var many =
              time(
                  BenchPrograms.planUnfused(BenchPrograms.kernels(kernels, ranks()), target),
                  MAX_RUNS);
          return Timing.of(
              many.micros().stream()
                  .mapToDouble(micros -> Math.max(1e-2, (micros - one.median()) / (kernels - 1)))
                  .toArray());
        });
    measure(
        "a copy",
        new Subject.Copy(bytes),
        dtype,
        () ->
            time(
                BenchPrograms.plan(BenchPrograms.copy(dtype, bytes, ranks()), target),
                PRODUCT_RUNS));
    var _ = product(dtype, size);
  }

  private interface Measurement {
    Timing take();
  }

  private void measure(String what, Subject subject, DType dtype, Measurement measurement) {
    try {
      var timing = measurement.take();
      found.accept(
          new Point(
              subject,
              timing.median(),
              timing.least(),
              timing.most(),
              dtype.shortName(),
              device,
              date,
              ""));
    } catch (RunException e) {
      failed.accept(what, e);
    }
  }

  private Timing time(Plan plan, int runs) {
    return sessions().time(plan, runs, measurements);
  }

  private Session open(Plan plan) {
    return sessions().open(plan);
  }

  private BenchSessions sessions() {
    return new BenchSessions(backend, options);
  }
}
