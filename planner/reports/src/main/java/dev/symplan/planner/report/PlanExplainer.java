package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The story of one value or collective: what the plan decided about it, and why. */
public final class PlanExplainer {
  /** More readers or companions than these are only counted. */
  private static final int NAMED = 8;

  private final Plan plan;
  private final RankIndex index;
  private final List<Row> rows = new ArrayList<>();

  private PlanExplainer(Plan plan, RankIndex index) {
    this.plan = plan;
    this.index = index;
  }

  /**
   * {@return the story as a row with its chapters below it; empty if no rank has a value of this
   * name}
   */
  public static Optional<Row> explain(Plan plan, String name) {
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      var index = new RankIndex(plan.rankPlans().get(i), PlanReport.ranksOf(plan, i));
      for (var value : index.values()) {
        if (value.name().equals(name)) {
          return Optional.of(new PlanExplainer(plan, index).story(value));
        }
      }
    }
    var gone = plan.rewrites().stream().filter(rewrite -> isPart(rewrite, name)).toList();
    return gone.isEmpty()
        ? Optional.empty()
        : Optional.of(
            Row.titled(name + " is in the source, but not in the plan")
                .rows(gone.stream().map(rewrite -> Row.of(RewriteText.of(rewrite))).toList())
                .build());
  }

  private static boolean isPart(Rewrite rewrite, String name) {
    return rewrite.members().stream().anyMatch(part -> part.name().equals(name));
  }

  private Row story(Value value) {
    var op = index.opOf(value);
    memory(value);
    graphs(value);
    demands(value);
    rewrites(value.name());
    if (op.isPresent()) {
      index.collectiveOf(index.opIndex(value)).ifPresent(this::choice);
    }
    uses(value);
    var title =
        op.map(
                by ->
                    "%s is the result of %s (%s)"
                        .formatted(value, by.def().name(), by.span().shortForm()))
            .orElseGet(() -> "%s is an input (%s)".formatted(value, value.span().shortForm()));
    return Row.titled(title).rows(rows).build();
  }

  private void say(String title, String text) {
    rows.add(Row.of(title, text));
  }

  private void memory(Value value) {
    var placement = index.plan().placement(value);
    if (!placement.exists()) {
      say(
          "memory",
          value.isTensor()
              ? "none: a fused step passes it on element by element"
              : "none: not a tensor");
      return;
    }
    var buffer = index.plan().buffers().get(placement.buffer());
    say(
        "memory",
        "%s, %s of the buffer '%s' (%s), in use from step %s to %s of %s"
            .formatted(
                index.address(value),
                Units.bytes(value.tensor().storageBytes()),
                RankIndex.printable(buffer.name()),
                Units.bytes(buffer.bytes()),
                buffer.first(),
                buffer.last(),
                index.plan().steps().size()));
    if (placement.isShard()) {
      var collective = index.plan().collectives().get(placement.shardOf());
      var stride = Units.bytes(placement.stride());
      say(
          "share",
          placement.stride() < value.tensor().storageBytes()
              ? "of %s: in each row of it, each rank of group %s has its own %s"
                  .formatted(index.name(collective), collective.group(), stride)
              : "of %s: each rank of group %s has its own, %s after the previous rank's"
                  .formatted(index.name(collective), collective.group(), stride));
    }
    if (placement.isInRows()) {
      say(
          "rows",
          "of %s, and from one to the next %s: those of other tensors lie between"
              .formatted(Units.bytes(placement.stride()), Units.bytes(placement.pitch())));
    }
    var others =
        index.valuesOf(placement.buffer()).stream()
            .filter(other -> other.id() != value.id())
            .map(Value::name)
            .toList();
    if (!others.isEmpty()) {
      say("shared", "the buffer is shared with " + listed(others));
    }
  }

  private static String listed(List<String> names) {
    var text = names.stream().limit(NAMED).collect(Collectors.joining(", "));
    return names.size() > NAMED ? "%s and %s more".formatted(text, names.size() - NAMED) : text;
  }

  /** Which graphs of a program of several make the value and use it. */
  private void graphs(Value value) {
    var graphs = GraphSteps.of(index);
    if (graphs.size() == 1) {
      return;
    }
    var ops = index.plan().graph().ops();
    var users =
        IntStream.range(0, ops.size())
            .filter(op -> ops.get(op).operands().contains(value))
            .mapToObj(this::graphOf)
            .distinct()
            .toList();
    var from =
        index.opOf(value).isPresent()
            ? "made in graph '%s'".formatted(graphOf(index.opIndex(value)))
            : "an input";
    say(
        "graphs",
        users.isEmpty()
            ? from + ", read by none"
            : "%s, read in '%s'".formatted(from, String.join("', '", users)));
  }

  private String graphOf(int op) {
    return index.plan().graphs().stream()
        .filter(graph -> op < graph.endOp())
        .findFirst()
        .orElseThrow()
        .name();
  }

  /** Which collectives want the value's memory to be symmetric, and what they got. */
  private void demands(Value value) {
    var placement = index.plan().placement(value);
    for (var collective : index.plan().collectives()) {
      if (collective.op() == index.opIndex(value)) {
        // Its own story has that.
        continue;
      }
      var tensors = RankIndex.tensors(collective);
      for (int i = 0; i < tensors.size(); i++) {
        var arg = collective.args().get(i);
        var tensor = index.values().get(tensors.get(i));
        boolean same =
            placement.exists() && index.plan().placement(tensor).buffer() == placement.buffer();
        boolean itself = arg.value().equals(value.name());
        if (arg.realization() != Realization.NOT_NEEDED && (same || itself)) {
          say(
              "wanted",
              "in symmetric memory by %s as %s (%s): %s %s, %s"
                  .formatted(
                      index.name(collective),
                      collective.variant().text(),
                      index.plan().graph().ops().get(collective.op()).span().shortForm(),
                      arg.result() ? "result" : "operand",
                      arg.value(),
                      index.text(arg)));
          Improvements.copy(arg).ifPresent(words -> say("better", words));
        }
      }
    }
  }

  private void choice(CollectivePlan collective) {
    int k = index.plan().collectives().indexOf(collective);
    var row = CollectivesSection.row(plan, index, k);
    var verdicts =
        row.rows().stream().filter(child -> child.facts().containsKey("verdict")).toList();
    rows.add(
        Row.titled("runs as")
            .details(
                "%s: %s".formatted(collective.variant().text(), collective.variant().summary()))
            .rows(verdicts)
            .build());
    say(
        "moves",
        "%s per rank, %s over the busier link direction; %s"
            .formatted(
                Units.bytes(row.whole("bytes")),
                Units.bytes(Math.round(row.real("link_bytes"))),
                row.text("numerics")));
    if (collective.workspace() != CollectivePlan.NO_WORKSPACE) {
      var buffer = index.plan().buffers().get(collective.workspace());
      say(
          "through",
          "%s, %s, %s"
              .formatted(
                  RankIndex.printable(buffer.name()),
                  RankIndex.address(buffer, 0),
                  Units.bytes(buffer.bytes())));
    }
    for (var arg : collective.args()) {
      say(arg.result() ? "result" : "operand", "%s %s".formatted(arg.value(), index.text(arg)));
      Improvements.copy(arg).ifPresent(words -> say("better", words));
    }
    collective
        .epilogue()
        .ifPresent(
            epilogue ->
                say("epilogue", CollectivesSection.epilogueText(index, collective, epilogue)));
    if (collective.variant().hasPlannedBarriers()) {
      say(
          "barriers",
          "before: %s, after: %s".formatted(row.text("start_barrier"), row.text("end_barrier")));
    }
    say(
        "stream",
        collective.isAsync()
            ? "beside compute, on the %s stream".formatted(collective.stream().text())
            : "on the compute stream: beside compute, it would gain no time or cost memory");
    Improvements.variants(plan, index, collective).forEach(words -> say("better", words));
  }

  /** The rewrites of the source's collective that gives this value, or gave it. */
  private void rewrites(String name) {
    for (var rewrite : plan.rewrites()) {
      if (isPart(rewrite, name)) {
        rows.add(Row.of(RewriteText.of(rewrite)));
      }
    }
  }

  private void uses(Value value) {
    var readers = ImmutableList.copyOf(index.readers(value));
    for (int number : readers.subList(0, Math.min(NAMED, readers.size()))) {
      var op = index.plan().graph().ops().get(number);
      int step = index.stepOfOp(number);
      say(
          "read by",
          "%s (%s)%s%s"
              .formatted(
                  op.def().name(),
                  op.span().shortForm(),
                  index.collectiveOf(number).map(c -> " as " + c.variant().text()).orElse(""),
                  step < 0 ? ", which moves no data" : " in step " + step));
    }
    if (readers.size() > NAMED) {
      say("read by", "%s more".formatted(readers.size() - NAMED));
    }
    if (index.plan().graph().outputs().stream()
        .anyMatch(o -> o instanceof Arg.Ref(var v) && v.id() == value.id())) {
      rows.add(Row.of("returned by the graph"));
    }
  }
}
