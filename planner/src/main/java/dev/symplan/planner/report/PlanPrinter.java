package dev.symplan.planner.report;

import com.google.common.base.Ascii;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Arena;
import dev.symplan.planner.ArgDecision;
import dev.symplan.planner.ArgDecision.Realization;
import dev.symplan.planner.Barrier;
import dev.symplan.planner.Buffer;
import dev.symplan.planner.CollectivePlan;
import dev.symplan.planner.Plan;
import dev.symplan.planner.RankPlan;
import dev.symplan.planner.Reordering;
import dev.symplan.planner.Rewrite;
import dev.symplan.planner.Step;
import dev.symplan.planner.Verdict;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A plan as text: what lives where, which variant each collective runs, and why. */
public final class PlanPrinter {

  /** What to show. */
  public enum View {
    /** Arenas and counts. */
    SUMMARY,
    /** Each collective with its variant, the predicted time, and what was not taken and why. */
    COLLECTIVES,
    /** Each buffer with arena, offset and live range, and why collectives find it there. */
    VALUES,
    /** The issue order, with streams and waits. */
    SCHEDULE
  }

  private final Plan plan;

  private PlanPrinter(Plan plan) {
    this.plan = plan;
  }

  /** {@return summary, collectives and values} */
  public static String print(Plan plan) {
    return print(plan, List.of(View.SUMMARY, View.COLLECTIVES, View.VALUES));
  }

  /** {@return the views, in this order, with an empty line between} */
  public static String print(Plan plan, List<View> views) {
    var printer = new PlanPrinter(plan);
    return views.stream()
        .map(
            view ->
                switch (view) {
                  case SUMMARY -> printer.summary();
                  case COLLECTIVES -> printer.perRank(printer::collectives) + printer.rewrites();
                  case VALUES -> printer.perRank(printer::values);
                  case SCHEDULE -> printer.perRank(printer::schedule);
                })
        .filter(text -> !text.isEmpty())
        .collect(Collectors.joining("\n"));
  }

  /** {@return how one tensor of a collective is realized, as a sentence} */
  public static String decision(RankPlan rankPlan, ArgDecision decision) {
    return DecisionText.of(rankPlan.graph(), decision);
  }

  private interface Section {
    String render(RankPlan rankPlan);
  }

  private String perRank(Section section) {
    if (plan.rankPlans().size() == 1) {
      return section.render(plan.rankPlans().getFirst());
    }
    var out = new ArrayList<String>();
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      out.add("ranks " + ranksOf(i) + "\n" + section.render(plan.rankPlans().get(i)));
    }
    return String.join("\n", out);
  }

  private List<Integer> ranksOf(int index) {
    var ranks = new ArrayList<Integer>();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      if (plan.planOfRank().get(rank) == index) {
        ranks.add(rank);
      }
    }
    return ranks;
  }

  private String summary() {
    long local = 0;
    long localBound = 0;
    long external = 0;
    for (var rankPlan : plan.rankPlans()) {
      local = Math.max(local, rankPlan.local().bytes());
      localBound = Math.max(localBound, rankPlan.local().bound());
      external =
          Math.max(
              external,
              rankPlan.buffers().stream()
                  .filter(b -> b.arena().isExternal())
                  .mapToLong(Buffer::bytes)
                  .sum());
    }
    var first = plan.rankPlans().getFirst();
    return "plan %s · %s rank%s · target %s · digest %s\n"
            .formatted(
                plan.name(),
                plan.worldSize(),
                plan.worldSize() == 1 ? "" : "s",
                plan.target().name(),
                plan.digest().substring(0, 12))
        + "arenas   symmetric %s (bound %s)   local %s (bound %s)   together %s (bound %s)   external %s\n"
            .formatted(
                Units.bytes(plan.symmetric().bytes()),
                Units.bytes(plan.symmetric().bound()),
                Units.bytes(local),
                Units.bytes(localBound),
                Units.bytes(plan.total().bytes()),
                Units.bytes(plan.total().bound()),
                Units.bytes(external))
        + "work     %s ops in %s steps · %s\n"
            .formatted(first.graph().ops().size(), first.steps().size(), counts(first))
        + "order    "
        + order(plan.reordering())
        + "\n"
        + barriers(first);
  }

  private static String order(Reordering reordering) {
    var given = reordering.given();
    var other = reordering.other();
    return switch (reordering.outcome()) {
      case OFF -> "as given";
      case NO_GAIN -> "as given: no other order was found that needs less";
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

  private static String barriers(RankPlan rankPlan) {
    var barriers =
        rankPlan.collectives().stream()
            .filter(collective -> collective.variant().hasPlannedBarriers())
            .flatMap(collective -> Stream.of(collective.start(), collective.end()))
            .toList();
    long redundant = barriers.stream().filter(Barrier.StandIn.class::isInstance).count();
    return redundant == 0
        ? ""
        : "barriers %s of %s: others stand in for the rest\n"
            .formatted(barriers.size() - redundant, barriers.size());
  }

  /** {@return what stands in for a barrier, for example {@code the end of r}} */
  static String text(RankPlan rankPlan, Barrier barrier) {
    return switch (barrier) {
      case Barrier.None _ -> "none";
      case Barrier.Own _ -> "own";
      case Barrier.StandIn(int k, var edge) ->
          "the %s of %s".formatted(edge.text(), name(rankPlan, rankPlan.collectives().get(k)));
    };
  }

  private static String standIn(RankPlan rankPlan, String edge, Barrier barrier) {
    return barrier instanceof Barrier.StandIn
        ? ", %s barrier: %s".formatted(edge, text(rankPlan, barrier))
        : "";
  }

  private static String counts(RankPlan rankPlan) {
    if (rankPlan.collectives().isEmpty()) {
      return "no collectives";
    }
    var counts = new TreeMap<String, Integer>();
    long copies = 0;
    long copied = 0;
    for (var collective : rankPlan.collectives()) {
      counts.merge(kind(collective.kind()) + " " + collective.variant().text(), 1, Integer::sum);
      for (var arg : collective.args()) {
        if (arg.realization() == Realization.STAGED) {
          copies++;
          copied += arg.bytes();
        }
      }
    }
    return counts.entrySet().stream()
            .map(e -> e.getValue() + " × " + e.getKey())
            .collect(Collectors.joining(", "))
        + (copies == 0
            ? " · no copies"
            : " · %s cop%s of %s"
                .formatted(copies, copies == 1 ? "y" : "ies", Units.bytes(copied)));
  }

  private static String kind(Kind kind) {
    return Ascii.toLowerCase(kind.name());
  }

  private String collectives(RankPlan rankPlan) {
    var table =
        new Table(
            "collective", "variant", "operand", "result", "predicted", "size · and the others");
    var values = rankPlan.graph().values();
    for (var collective : rankPlan.collectives()) {
      var verdict = collective.verdict();
      long bytes =
          collective.operands().stream().mapToLong(id -> values.get(id).tensor().bytes()).sum();
      table.row(
          name(rankPlan, collective) + " " + kind(collective.kind()),
          collective.variant().text() + (collective.isAsync() ? " ∥" : ""),
          places(rankPlan, values, collective, false),
          places(rankPlan, values, collective, true),
          Units.micros(verdict.totalMicros()),
          Units.bytes(bytes) + others(collective));
    }
    return table.isEmpty() ? "" : table.render();
  }

  /** What became of the source's collectives; {@code explain} tells of those left as they were. */
  private String rewrites() {
    var made = plan.rewrites().stream().filter(Rewrite::made).map(RewriteText::of).toList();
    return made.isEmpty() ? "" : "\n" + String.join("\n", made) + "\n";
  }

  static String name(RankPlan rankPlan, CollectivePlan collective) {
    var op = rankPlan.graph().ops().get(collective.op());
    return op.results().isEmpty() ? op.def().name().name() : op.results().getFirst().name();
  }

  private static String places(
      RankPlan rankPlan, List<Value> values, CollectivePlan collective, boolean results) {
    var ids = results ? collective.results() : collective.operands();
    if (ids.isEmpty()) {
      return "-";
    }
    var first = values.get(ids.getFirst());
    boolean inPlace = !results && collective.inPlace();
    var text = first.name() + (inPlace ? " in place, " : " ") + address(rankPlan, first);
    return ids.size() == 1 ? text : text + " and " + (ids.size() - 1) + " more";
  }

  /** {@return for example {@code symm+0x400}, {@code in3}} */
  static String address(RankPlan rankPlan, Value value) {
    var placement = rankPlan.placement(value);
    if (!placement.exists()) {
      return "no memory";
    }
    var buffer = rankPlan.buffers().get(placement.buffer());
    return address(buffer, placement.offset());
  }

  static String address(Buffer buffer, long offset) {
    return switch (buffer.arena()) {
      case SYMMETRIC -> "symm+0x" + Long.toHexString(buffer.offset() + offset);
      case LOCAL -> "local+0x" + Long.toHexString(buffer.offset() + offset);
      case EXTERNAL_INPUT -> "in" + buffer.offset() + plus(offset);
      case EXTERNAL_OUTPUT -> "out" + buffer.offset() + plus(offset);
    };
  }

  private static String plus(long offset) {
    return offset == 0 ? "" : "+0x" + Long.toHexString(offset);
  }

  private static String others(CollectivePlan collective) {
    var out = new StringBuilder();
    for (var verdict : collective.verdicts()) {
      if (!verdict.chosen() && verdict.reason() != Verdict.Reason.GROUP_SIZE) {
        out.append(" · ").append(verdict.variant().text()).append(' ');
        out.append(
            verdict.reason().eligible()
                ? Units.micros(verdict.totalMicros()).replace(" µs", "")
                : "no: " + verdict.detail());
      }
    }
    return out.toString();
  }

  private String values(RankPlan rankPlan) {
    var table = new Table("value", "memory", "size", "steps", "because");
    var decisions = decisions(rankPlan);
    for (int i = 0; i < rankPlan.buffers().size(); i++) {
      var buffer = rankPlan.buffers().get(i);
      if (buffer.bytes() > 0) {
        table.row(
            buffer.name(),
            address(buffer, 0) + guest(buffer),
            Units.bytes(buffer.bytes()),
            buffer.first() + ".." + buffer.last(),
            because(rankPlan, i, decisions));
      }
    }
    return table.isEmpty() ? "" : table.render();
  }

  private static String guest(Buffer buffer) {
    return buffer.arena() == Arena.SYMMETRIC && !buffer.symmetric() ? " (local)" : "";
  }

  /**
   * For each buffer, why it is where it is: what a collective makes of the first value that asks.
   */
  private static Map<Integer, ArgDecision> decisions(RankPlan rankPlan) {
    var decisions = new HashMap<Integer, ArgDecision>();
    for (var collective : rankPlan.collectives()) {
      var values = new ArrayList<>(collective.operands());
      values.addAll(collective.results());
      for (int i = 0; i < values.size(); i++) {
        int buffer = rankPlan.placements().get(values.get(i)).buffer();
        decisions.merge(
            buffer,
            collective.args().get(i),
            (a, b) -> a.realization() == ArgDecision.Realization.NOT_NEEDED ? b : a);
      }
    }
    return decisions;
  }

  private static String because(RankPlan rankPlan, int index, Map<Integer, ArgDecision> decisions) {
    var buffer = rankPlan.buffers().get(index);
    var reasons = new ArrayList<String>();
    for (var input : rankPlan.graph().inputs()) {
      if (input.isTensor() && rankPlan.placement(input).buffer() == index) {
        reasons.add(
            switch (buffer.arena()) {
              case SYMMETRIC -> "planned input: the caller fills it in the arena";
              case LOCAL -> "planned input";
              case EXTERNAL_INPUT, EXTERNAL_OUTPUT -> "input of the caller's";
            });
      }
    }
    rankPlan.collectives().stream()
        .filter(collective -> collective.workspace() == index)
        .findFirst()
        .ifPresent(
            collective ->
                reasons.add(
                    "peers of group %s push what they reduce there, at any time"
                        .formatted(collective.group())));
    if (decisions.get(index) instanceof ArgDecision decision) {
      reasons.add(DecisionText.of(rankPlan.graph(), decision));
    }
    for (Arg output : rankPlan.graph().outputs()) {
      if (output instanceof Arg.Ref(Value value)
          && value.isTensor()
          && rankPlan.placement(value).buffer() == index) {
        reasons.add(
            buffer.arena() == Arena.EXTERNAL_OUTPUT
                ? "output of the caller's"
                : "planned output " + value.name() + ": the caller reads it there, no copy");
        break;
      }
    }
    return String.join("; ", reasons);
  }

  private String schedule(RankPlan rankPlan) {
    var table = new Table("step", "stream", "what");
    var steps = rankPlan.steps();
    for (int i = 0; i < steps.size(); i++) {
      var number = Integer.toString(i);
      switch (steps.get(i)) {
        case Step.Compute(int op) -> table.row(number, "compute", opText(rankPlan, op));
        case Step.Fused(var ops) -> {
          for (int part = 0; part < ops.length(); part++) {
            table.row(
                part == 0 ? number : "",
                part == 0 ? "compute" : "  fused",
                opText(rankPlan, ops.get(part)));
          }
        }
        case Step.Start(int k) -> {
          var collective = rankPlan.collectives().get(k);
          table.row(
              number,
              collective.stream().text(),
              opText(rankPlan, collective.op())
                  + " as "
                  + collective.variant().text()
                  + standIn(rankPlan, "start", collective.start())
                  + standIn(rankPlan, "end", collective.end()));
        }
        case Step.Join(int k) ->
            table.row(
                number, "compute", "wait for " + name(rankPlan, rankPlan.collectives().get(k)));
      }
    }
    return table.render();
  }

  private static String opText(RankPlan rankPlan, int index) {
    var op = rankPlan.graph().ops().get(index);
    var results =
        op.results().stream()
            .filter(Value::isTensor)
            .map(
                v ->
                    v.name()
                        + (rankPlan.placement(v).exists() ? " at " : ", ")
                        + address(rankPlan, v))
            .collect(Collectors.joining(", "));
    return op.def().name() + (results.isEmpty() ? "" : " → " + results);
  }
}
