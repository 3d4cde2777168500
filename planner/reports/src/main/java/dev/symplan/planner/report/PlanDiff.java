package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.text.RankText;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The differences between two plans that matter: variants, arenas, sizes, times. Offsets are only
 * mentioned if nothing else differs.
 */
public final class PlanDiff {
  private final Plan before;
  private final Plan after;

  private PlanDiff(Plan before, Plan after) {
    this.before = before;
    this.after = after;
  }

  /** {@return the differences, in chapters; none if the plans mean the same} */
  public static ImmutableList<Row> of(Plan before, Plan after) {
    var diff = new PlanDiff(before, after);
    var chapters = ImmutableList.<Row>builder();
    diff.add(chapters, "plan", diff.heads());
    diff.add(chapters, "memory", diff.sizes());
    diff.add(chapters, "time", diff.times());
    int graphs = Math.min(before.rankPlans().size(), after.rankPlans().size());
    for (int i = 0; i < graphs; i++) {
      var from = new RankIndex(before.rankPlans().get(i), PlanReport.ranksOf(before, i));
      var to = new RankIndex(after.rankPlans().get(i), PlanReport.ranksOf(after, i));
      var of = graphs == 1 ? "" : " of ranks " + RankText.list(to.ranks());
      diff.add(chapters, "collectives" + of, diff.collectives(from, to));
      diff.add(chapters, "values" + of, values(from, to));
    }
    var found = chapters.build();
    return found.isEmpty() && !before.digest().equals(after.digest())
        ? ImmutableList.of(
            Row.titled("layout")
                .row(Row.of("offsets", "differ; everything else is the same"))
                .build())
        : found;
  }

  private void add(ImmutableList.Builder<Row> chapters, String title, ImmutableList<Row> rows) {
    if (!rows.isEmpty()) {
      chapters.add(Row.titled(title).rows(rows).build());
    }
  }

  private ImmutableList<Row> heads() {
    var rows = ImmutableList.<Row>builder();
    change(rows, "name", before.name(), after.name());
    change(rows, "target", before.target().name(), after.target().name());
    change(rows, "ranks", "" + before.worldSize(), "" + after.worldSize());
    change(rows, "graphs", "" + before.rankPlans().size(), "" + after.rankPlans().size());
    if (!before.forRank(0).borders().isEmpty() || !after.forRank(0).borders().isEmpty()) {
      change(rows, "graphs run", graphs(before), graphs(after));
    }
    change(
        rows,
        "order",
        Codes.of(before.reordering().outcome()),
        Codes.of(after.reordering().outcome()));
    return rows.build();
  }

  private static String graphs(Plan plan) {
    return plan.rankPlans().getFirst().graphs().stream()
        .map(ProgramGraph::name)
        .collect(Collectors.joining(", "));
  }

  private static void change(
      ImmutableList.Builder<Row> rows, String title, String from, String to) {
    if (!from.equals(to)) {
      rows.add(Row.of(title, "%s → %s".formatted(from, to)));
    }
  }

  private ImmutableList<Row> sizes() {
    var rows = ImmutableList.<Row>builder();
    bytes(rows, "symmetric", before.symmetric().bytes(), after.symmetric().bytes());
    bytes(rows, "local", local(before), local(after));
    bytes(rows, "together", before.total().bytes(), after.total().bytes());
    bytes(rows, "live at most", before.total().bound(), after.total().bound());
    bytes(rows, "external", external(before), external(after));
    return rows.build();
  }

  private static long local(Plan plan) {
    return plan.rankPlans().stream().mapToLong(p -> p.local().bytes()).max().orElse(0);
  }

  private static long external(Plan plan) {
    return plan.rankPlans().stream().mapToLong(SummarySection::externalBytes).max().orElse(0);
  }

  private static void bytes(ImmutableList.Builder<Row> rows, String title, long from, long to) {
    if (from != to) {
      rows.add(
          Row.titled(title)
              .details(
                  "%s → %s, %s".formatted(Units.bytes(from), Units.bytes(to), difference(from, to)))
              .fact("before_bytes", from)
              .fact("after_bytes", to)
              .build());
    }
  }

  private static String difference(long from, long to) {
    return to > from ? Units.bytes(to - from) + " more" : Units.bytes(from - to) + " less";
  }

  private ImmutableList<Row> times() {
    double from = time(before);
    double to = time(after);
    if (Units.micros(from).equals(Units.micros(to))) {
      return ImmutableList.of();
    }
    return ImmutableList.of(
        Row.titled("predicted")
            .details("%s → %s".formatted(Units.micros(from), Units.micros(to)))
            .fact("before_us", from)
            .fact("after_us", to)
            .build());
  }

  private static double time(Plan plan) {
    return plan.rankPlans().stream()
        .mapToDouble(rankPlan -> PredictedTimes.of(plan, rankPlan).total())
        .max()
        .orElse(0);
  }

  private ImmutableList<Row> collectives(RankIndex from, RankIndex to) {
    var rows = ImmutableList.<Row>builder();
    var old = byName(from);
    var now = byName(to);
    old.forEach(
        (name, collective) -> {
          if (!now.containsKey(name)) {
            rows.add(Row.of(name, "gone" + became(after, name)));
          }
        });
    now.forEach(
        (name, collective) -> {
          var was = old.get(name);
          if (was == null) {
            rows.add(
                Row.of(
                    name,
                    "new, as %s%s".formatted(collective.variant().text(), became(before, name))));
          } else {
            collective(rows, name, was, collective);
          }
        });
    return rows.build();
  }

  /** The collective that took the place of one that a plan lacks, where a rewrite says it. */
  private static String became(Plan plan, String name) {
    return plan.rewrites().stream()
        .filter(rewrite -> rewrite.made())
        .filter(rewrite -> rewrite.members().stream().anyMatch(part -> part.name().equals(name)))
        .findFirst()
        .map(rewrite -> ": " + RewriteText.of(rewrite))
        .orElse("");
  }

  private static Map<String, CollectivePlan> byName(RankIndex index) {
    var byName = new LinkedHashMap<String, CollectivePlan>();
    index.plan().collectives().forEach(c -> byName.putIfAbsent(index.name(c), c));
    return byName;
  }

  private void collective(
      ImmutableList.Builder<Row> rows, String name, CollectivePlan was, CollectivePlan is) {
    if (was.variant() != is.variant()) {
      rows.add(
          Row.titled(name)
              .details(
                  "%s → %s: %s".formatted(was.variant().text(), is.variant().text(), why(was, is)))
              .fact("before_variant", was.variant().text())
              .fact("after_variant", is.variant().text())
              .build());
    }
    change(rows, name + " stream", was.stream().text(), is.stream().text());
    change(rows, name + " copies", copies(was), copies(is));
    change(
        rows,
        name + " result",
        was.inPlace() ? "in place" : "apart",
        is.inPlace() ? "in place" : "apart");
  }

  private static String copies(CollectivePlan collective) {
    long bytes =
        collective.args().stream()
            .filter(arg -> arg.realization() == Realization.STAGED)
            .mapToLong(arg -> arg.bytes())
            .sum();
    return bytes == 0 ? "none" : Units.bytes(bytes);
  }

  private static String why(CollectivePlan was, CollectivePlan is) {
    var old = verdict(is, was.variant());
    if (old.isPresent() && !old.get().reason().eligible()) {
      return "%s cannot: %s".formatted(was.variant().text(), old.get().detail());
    }
    var then = verdict(was, is.variant());
    if (then.isPresent() && !then.get().reason().eligible()) {
      return "%s could not: %s".formatted(is.variant().text(), then.get().detail());
    }
    if (is.verdict().reason() == Verdict.Reason.FORCED) {
      return "forced";
    }
    if (was.verdict().reason() == Verdict.Reason.FORCED) {
      return "no longer forced";
    }
    return "%s, not %s; before %s, not %s"
        .formatted(
            micros(is, is.variant()),
            micros(is, was.variant()),
            micros(was, was.variant()),
            micros(was, is.variant()));
  }

  private static Optional<Verdict> verdict(CollectivePlan collective, Variant variant) {
    return collective.verdicts().stream().filter(v -> v.variant() == variant).findFirst();
  }

  private static String micros(CollectivePlan collective, Variant variant) {
    return verdict(collective, variant).map(v -> Units.micros(v.totalMicros())).orElse("unknown");
  }

  private static ImmutableList<Row> values(RankIndex from, RankIndex to) {
    var rows = ImmutableList.<Row>builder();
    var old = new LinkedHashMap<String, Value>();
    from.values().forEach(value -> old.putIfAbsent(value.name(), value));
    for (var value : to.values()) {
      var was = old.get(value.name());
      if (was != null && value.isTensor() && was.isTensor()) {
        change(rows, value.name(), address(from, was), address(to, value));
      }
    }
    return rows.build();
  }

  private static String address(RankIndex index, Value value) {
    var placement = index.plan().placement(value);
    if (!placement.exists()) {
      return "no memory";
    }
    var buffer = index.plan().buffers().get(placement.buffer());
    return "%s%s, %s"
        .formatted(
            buffer.arena().text(),
            buffer.symmetric() ? ", for peers" : "",
            Units.bytes(value.tensor().storageBytes()));
  }
}
