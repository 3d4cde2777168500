package dev.symplan.planner.report;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.plan.Plan;
import java.util.List;

/** The planned graph: as text that can be compiled again, and as nodes and edges. */
final class GraphSection {
  private final RankIndex index;
  private final PredictedTimes times;

  private GraphSection(Plan plan, RankIndex index) {
    this.index = index;
    this.times = PredictedTimes.of(plan, index.plan());
  }

  /** {@return one section for each graph; the first has the text of all} */
  static ImmutableList<Section> of(Plan plan, ImmutableList<RankIndex> indices) {
    var sections = ImmutableList.<Section>builder();
    for (int i = 0; i < indices.size(); i++) {
      var section = new GraphSection(plan, indices.get(i));
      sections.add(
          new Section(
              View.GRAPH,
              section.index.ranks(),
              "",
              ImmutableList.of(),
              section.rows(),
              i == 0 ? text(plan) : ImmutableList.of()));
    }
    return sections.build();
  }

  private static ImmutableList<String> text(Plan plan) {
    var graphs =
        plan.rankPlans().stream()
            .map(rankPlan -> rankPlan.graph())
            .collect(ImmutableList.toImmutableList());
    var text =
        GraphPrinter.print(new Program(plan.groups(), plan.declarations(), graphs, Notes.NONE));
    return ImmutableList.copyOf(Splitter.on('\n').split(text.stripTrailing()));
  }

  private ImmutableList<Row> rows() {
    var rows = ImmutableList.<Row>builder();
    var graph = index.plan().graph();
    graph.inputs().forEach(input -> rows.add(input(input)));
    for (int i = 0; i < graph.ops().size(); i++) {
      rows.add(op(i, graph.ops().get(i)));
    }
    rows.add(
        Row.titled("return")
            .fact("node", "output")
            .numbers("operands", ids(graph.outputValues()))
            .build());
    return rows.build();
  }

  private Row input(Value input) {
    return Row.titled(input.name())
        .fact("node", "input")
        .fact("source", input.span().shortForm())
        .numbers("operands", List.of())
        .rows(List.of(value(input)))
        .build();
  }

  private Row op(int number, Op op) {
    int step = index.stepOfOp(number);
    var row =
        Row.titled(op.label())
            .fact("node", "op")
            .fact("op", op.def().name().toString())
            .fact("source", op.span().shortForm())
            .fact("step", step)
            .numbers("operands", ids(op.operands()));
    var collective = index.collectiveOf(number);
    if (collective.isPresent()) {
      row.fact("variant", collective.get().variant().text())
          .fact("stream", collective.get().stream().text())
          .fact("group", collective.get().group());
    }
    if (step >= 0) {
      row.fact("duration_us", times.end().get(step) - times.begin().get(step));
    }
    op.results().forEach(result -> row.row(value(result)));
    return row.build();
  }

  private Row value(Value value) {
    var row =
        Row.titled(RankIndex.printable(value.name()))
            .fact("value", value.id())
            .fact("type", value.type().toString())
            .fact("place", value.isTensor() ? index.address(value) : "");
    var placement = index.plan().placement(value);
    if (placement.exists()) {
      var buffer = index.plan().buffers().get(placement.buffer());
      row.fact("buffer", placement.buffer())
          .fact("bytes", value.isTensor() ? value.tensor().bytes() : 0L)
          .fact("symmetric", buffer.symmetric());
    }
    if (placement.isShard()) {
      row.fact("share_of", placement.shardOf()).fact("stride", placement.stride());
    }
    if (placement.isInRows()) {
      row.fact("row_bytes", placement.stride()).fact("pitch", placement.pitch());
    }
    return row.build();
  }

  private static ImmutableList<Integer> ids(List<Value> values) {
    return values.stream().map(Value::id).collect(ImmutableList.toImmutableList());
  }
}
