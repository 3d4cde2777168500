package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.text.RankText;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Arenas, counts and the predicted time of a plan. */
final class SummarySection {
  /** More tensors that give up their memory than these are only counted. */
  private static final int NAMED = 8;

  private final Plan plan;
  private final ImmutableList<RankIndex> indices;
  private final RankPlan first;

  private SummarySection(Plan plan, ImmutableList<RankIndex> indices) {
    this.plan = plan;
    this.indices = indices;
    this.first = plan.rankPlans().getFirst();
  }

  static Section of(Plan plan, ImmutableList<RankIndex> indices) {
    var summary = new SummarySection(plan, indices);
    var rows = ImmutableList.<Row>builder();
    rows.add(summary.arenas());
    summary.packing().forEach(rows::add);
    rows.addAll(summary.graphs());
    rows.add(summary.windows(), summary.work(), summary.time(), summary.order());
    rows.add(summary.frontier(), summary.balance());
    summary.givenUp().ifPresent(rows::add);
    summary.barriers().ifPresent(rows::add);
    return new Section(
        View.SUMMARY,
        PlanReport.ranksOf(plan),
        "plan %s · %s%s · target %s · digest %s"
            .formatted(
                plan.name(),
                Units.count(plan.worldSize(), "rank"),
                plan.topology().unlike(plan.target()).map(hosts -> " on hosts " + hosts).orElse(""),
                plan.target().name(),
                plan.digest().substring(0, 12)),
        ImmutableList.of(),
        rows.build(),
        summary.lines());
  }

  /** The tensors that give up their memory, so that the plan stays below the caller's limit. */
  private Optional<Row> givenUp() {
    var given = plan.rewrites().stream().filter(Rewrite::freesMemory).toList();
    if (given.isEmpty()) {
      return Optional.empty();
    }
    var again = given.stream().filter(one -> one.action() == Rewrite.Action.RECOMPUTED).toList();
    var moved = given.stream().filter(one -> one.action() == Rewrite.Action.OFFLOADED).toList();
    var words = new StringJoiner(", ");
    if (!again.isEmpty()) {
      words.add("%s computed again".formatted(Units.count(again.size(), "tensor")));
    }
    if (!moved.isEmpty()) {
      words.add("%s moved to the host's memory".formatted(Units.count(moved.size(), "tensor")));
    }
    return Optional.of(
        Row.titled("memory limit")
            .details(
                "%s, %s more; the least memory that would do is %s"
                    .formatted(
                        words, Units.micros(micros(given)), Units.bytes(plan.least().orElse(0))))
            .fact("recomputed", again.size())
            .fact("recomputed_us", micros(again))
            .fact("offloaded", moved.size())
            .fact("offloaded_us", micros(moved))
            .fact("least_bytes", plan.least().orElse(0))
            .build());
  }

  private static double micros(List<Rewrite> rewrites) {
    return rewrites.stream().mapToDouble(Rewrite::afterMicros).sum();
  }

  private ImmutableList<String> lines() {
    var given = plan.rewrites().stream().filter(Rewrite::freesMemory).toList();
    var lines = given.stream().limit(NAMED).map(RewriteText::of);
    return Stream.concat(
            lines,
            given.size() > NAMED
                ? Stream.of("%s more give up their memory".formatted(given.size() - NAMED))
                : Stream.of())
        .collect(ImmutableList.toImmutableList());
  }

  /** One for each graph of a program of several, in their order. */
  private ImmutableList<Row> graphs() {
    var graphs = GraphSteps.of(indices.getFirst());
    if (graphs.size() == 1) {
      return ImmutableList.of();
    }
    var times = PredictedTimes.of(plan, first);
    return graphs.stream()
        .map(graph -> graph.row(first, times))
        .collect(ImmutableList.toImmutableList());
  }

  private Row arenas() {
    long local = 0;
    long localBound = 0;
    long external = 0;
    long host = 0;
    for (var rankPlan : plan.rankPlans()) {
      local = Math.max(local, rankPlan.local().bytes());
      localBound = Math.max(localBound, rankPlan.local().bound());
      external = Math.max(external, externalBytes(rankPlan));
      host = Math.max(host, rankPlan.hostBytes());
    }
    return Row.titled("arenas")
        .details(
            "symmetric %s (bound %s)   local %s (bound %s)   together %s (bound %s)   external %s%s"
                .formatted(
                    Units.bytes(plan.symmetric().bytes()),
                    Units.bytes(plan.symmetric().bound()),
                    Units.bytes(local),
                    Units.bytes(localBound),
                    Units.bytes(plan.total().bytes()),
                    Units.bytes(plan.total().bound()),
                    Units.bytes(external),
                    host == 0 ? "" : "   host " + Units.bytes(host)))
        .fact("symmetric_bytes", plan.symmetric().bytes())
        .fact("symmetric_bound_bytes", plan.symmetric().bound())
        .fact("local_bytes", local)
        .fact("local_bound_bytes", localBound)
        .fact("total_bytes", plan.total().bytes())
        .fact("total_bound_bytes", plan.total().bound())
        .fact("external_bytes", external)
        .fact("host_bytes", host)
        .build();
  }

  /** {@return the bytes of a rank's inputs and outputs in the caller's memory} */
  static long externalBytes(RankPlan rankPlan) {
    return rankPlan.buffers().stream()
        .filter(buffer -> buffer.arena().isExternal())
        .mapToLong(Buffer::bytes)
        .sum();
  }

  /** For each arena of each graph, what is live in it at most, and when. */
  private Stream<Row> packing() {
    return indices.stream()
        .flatMap(
            index ->
                Arenas.of(plan, index.plan()).stream()
                    .filter(arena -> arena.bytes() > 0)
                    .map(arena -> packing(index, arena)));
  }

  private Row packing(RankIndex index, Arenas arena) {
    return Row.titled("peak")
        .details(
            "%s%s: %s live %s, %s %% fragmented"
                .formatted(
                    arena.arena().text(),
                    plan.rankPlans().size() == 1 ? "" : " of ranks " + RankText.list(index.ranks()),
                    Units.bytes(arena.live()),
                    index.when(arena.peakStep()),
                    String.format(Locale.ROOT, "%.1f", arena.fragmentation())))
        .fact("arena", arena.arena().text())
        .numbers("ranks", index.ranks())
        .fact("bytes", arena.bytes())
        .fact("bound_bytes", arena.bound())
        .fact("live_bytes", arena.live())
        .fact("peak_step", arena.peakStep())
        .fact("fragmentation_percent", arena.fragmentation())
        .build();
  }

  private Row windows() {
    var groups = new TreeSet<String>();
    for (var collective : first.collectives()) {
      if (collective.variant() == Variant.NCCL_SYMM) {
        groups.add(collective.group());
      }
    }
    return Row.titled("windows")
        .details(
            groups.isEmpty()
                ? "none: no collective uses NCCL's symmetric kernels"
                : "%s: the symmetric arena, registered with %s"
                    .formatted(groups.size(), String.join(", ", groups)))
        .fact("windows", groups.size())
        .names("groups", groups)
        .build();
  }

  private Row work() {
    var counts = new TreeMap<String, Integer>();
    long copies = 0;
    long copied = 0;
    for (var collective : first.collectives()) {
      counts.merge(
          Codes.of(collective.kind()) + " " + collective.variant().text(), 1, Integer::sum);
      for (var arg : collective.args()) {
        if (arg.realization() == Realization.STAGED) {
          copies++;
          copied += arg.bytes();
        }
      }
    }
    var kinds =
        counts.isEmpty()
            ? "no collectives"
            : counts.entrySet().stream()
                    .map(e -> e.getValue() + " × " + e.getKey())
                    .collect(Collectors.joining(", "))
                + (copies == 0
                    ? " · no copies"
                    : " · %s of %s".formatted(Units.count(copies, "copy"), Units.bytes(copied)));
    return Row.titled("work")
        .details(
            "%s in %s · %s"
                .formatted(
                    Units.count(first.graph().ops().size(), "op"),
                    Units.count(first.steps().size(), "step"),
                    kinds))
        .fact("ops", first.graph().ops().size())
        .fact("steps", first.steps().size())
        .fact("copies", copies)
        .fact("copied_bytes", copied)
        .rows(
            counts.entrySet().stream()
                .map(e -> Row.titled(e.getKey()).fact("count", e.getValue()).build())
                .toList())
        .build();
  }

  private Row time() {
    double micros = 0;
    double collectives = 0;
    for (var rankPlan : plan.rankPlans()) {
      micros = Math.max(micros, PredictedTimes.of(plan, rankPlan).total());
      collectives =
          Math.max(
              collectives,
              rankPlan.collectives().stream().mapToDouble(c -> c.verdict().totalMicros()).sum());
    }
    var row = Row.titled("time").fact("predicted_us", micros).fact("collectives_us", collectives);
    var text =
        "%s predicted, %s exposed communication"
            .formatted(Units.micros(micros), Units.micros(collectives));
    var slowest =
        first.collectives().stream()
            .max(Comparator.comparingDouble(c -> c.verdict().totalMicros()));
    if (slowest.isEmpty()) {
      return row.details(text).build();
    }
    var name = first.graph().ops().get(slowest.get().op()).label();
    return row.details(
            "%s, slowest collective %s: %s"
                .formatted(text, name, Units.micros(slowest.get().verdict().totalMicros())))
        .fact("slowest", name)
        .build();
  }

  private Row order() {
    var reordering = plan.reordering();
    return Row.titled("order")
        .details(order(reordering))
        .fact("outcome", Codes.of(reordering.outcome()))
        .build();
  }

  private static String order(OrderDecision reordering) {
    var given = reordering.given();
    var other = reordering.other();
    return switch (reordering.outcome()) {
      case OFF -> "as given";
      case NO_GAIN -> "as given: no other order found that needs less memory";
      case TOO_SLOW ->
          "as given: another needs %s at the peak, not %s, but %s, not %s"
              .formatted(
                  Units.bytes(other.peakBytes()),
                  Units.bytes(given.peakBytes()),
                  Units.micros(other.micros()),
                  Units.micros(given.micros()));
      case REORDERED ->
          "changed: %s at the peak, not %s · predicted %s, not %s"
              .formatted(
                  Units.bytes(other.peakBytes()),
                  Units.bytes(given.peakBytes()),
                  Units.micros(other.micros()),
                  Units.micros(given.micros()));
    };
  }

  /** The plans between which the caller could choose. */
  private Row frontier() {
    var frontier = plan.frontier();
    var row = Row.titled("frontier");
    var words = new StringJoiner(" · ");
    for (var objective : Objective.values()) {
      var figures = frontier.of(objective);
      words.add(
          "%s%s %s, %s"
              .formatted(
                  objective.text(),
                  objective == frontier.chosen() ? " (chosen)" : "",
                  Units.micros(figures.micros()),
                  Units.bytes(figures.peakBytes())));
      row.row(
          Row.titled(objective.text())
              .fact("predicted_us", figures.micros())
              .fact("peak_bytes", figures.peakBytes())
              .build());
    }
    return row.details(words.toString()).fact("chosen", frontier.chosen().text()).build();
  }

  /** The memory that a balanced plan may take, and its purpose. */
  private Row balance() {
    var frontier = plan.frontier();
    return Row.titled("balance")
        .details(
            "the given order without overlap takes %s, %s; more memory only for a gain of %s %%"
                .formatted(
                    Units.micros(frontier.alone().micros()),
                    Units.bytes(frontier.alone().peakBytes()),
                    String.format(Locale.ROOT, "%.1f", 100 * frontier.minGain())))
        .fact("min_gain_percent", 100 * frontier.minGain())
        .fact("alone_us", frontier.alone().micros())
        .fact("alone_bytes", frontier.alone().peakBytes())
        .build();
  }

  private Optional<Row> barriers() {
    var barriers =
        first.collectives().stream()
            .filter(collective -> collective.variant().hasPlannedBarriers())
            .flatMap(collective -> Stream.of(collective.start(), collective.end()))
            .toList();
    long redundant = barriers.stream().filter(Barrier.StandIn.class::isInstance).count();
    return redundant == 0
        ? Optional.empty()
        : Optional.of(
            Row.titled("barriers")
                .details(
                    "%s of %s: the others are redundant"
                        .formatted(barriers.size() - redundant, barriers.size()))
                .fact("barriers", barriers.size())
                .fact("left_out", redundant)
                .build());
  }
}
