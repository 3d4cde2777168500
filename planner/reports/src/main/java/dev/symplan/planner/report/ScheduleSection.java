package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** The steps in the order in which they are issued, with their streams, events and times. */
final class ScheduleSection {
  private final RankIndex index;
  private final PredictedTimes times;

  /** The events that side streams record, by collective. */
  private final Map<Integer, Integer> doneEvents = new HashMap<>();

  private int events;

  private ScheduleSection(Plan plan, RankIndex index) {
    this.index = index;
    this.times = PredictedTimes.of(plan, index.plan());
  }

  static Section of(Plan plan, RankIndex index) {
    var section = new ScheduleSection(plan, index);
    var rows = ImmutableList.<Row>builder();
    for (int i = 0; i < index.plan().steps().size(); i++) {
      rows.add(section.row(i, index.plan().steps().get(i)));
    }
    return new Section(
        View.SCHEDULE,
        index.ranks(),
        "",
        ImmutableList.of("step", "stream", "begins", "takes", "what"),
        rows.build(),
        ImmutableList.of());
  }

  private Row row(int number, Step step) {
    return switch (step) {
      case Step.Compute(int op) when ProgramGraph.isBorder(index.plan().graph().ops().get(op)) -> {
        var graph = index.plan().graph().ops().get(op).call().string("graph");
        yield row(
                number,
                "op",
                StreamKind.COMPUTE,
                "graph '%s' begins".formatted(graph),
                "graph " + graph)
            .fact("graph", graph)
            .build();
      }
      case Step.Compute(int op) when ProgramGraph.endsSetup(index.plan().graph().ops().get(op)) ->
          row(
                  number,
                  "op",
                  StreamKind.COMPUTE,
                  "each run begins; the steps above run once per session",
                  "run")
              .build();
      case Step.Compute(int op) -> row(number, "op", stream(op), opText(op), op(op)).build();
      case Step.Fused(var ops) -> {
        var row =
            row(number, "fused", StreamKind.COMPUTE, opText(ops.get(0)), op(ops.get(0)))
                .numbers("fused_ops", ops.asList());
        ops.stream()
            .skip(1)
            .forEach(op -> row.row(Row.titled("fused").details(opText(op)).fact("op", op).build()));
        yield row.build();
      }
      case Step.Start(int k) -> start(number, k);
      case Step.Join(int k) -> join(number, k);
    };
  }

  private StreamKind stream(int op) {
    return index.plan().graph().ops().get(op).def().has(OpTrait.HOST_COPY)
        ? StreamKind.COPY
        : StreamKind.COMPUTE;
  }

  private Row start(int number, int k) {
    var collective = index.plan().collectives().get(k);
    var text =
        opText(collective.op())
            + " as "
            + collective.variant().text()
            + standIn("start", collective.start())
            + standIn("end", collective.end())
            + (collective.hasEpilogue() ? ", with the next step in its kernel" : "");
    if (collective.isAsync()) {
      int fork = events++;
      doneEvents.put(k, events++);
      text += ", after event %s, records event %s".formatted(fork, doneEvents.get(k));
    }
    var row =
        row(number, "start", collective.stream(), text, op(collective.op())).fact("collective", k);
    return collective.isAsync()
        ? row.fact("overlap_us", overlap(number, k, collective)).build()
        : row.build();
  }

  private Row join(int number, int k) {
    var collective = index.plan().collectives().get(k);
    var name = index.name(collective);
    return row(
            number,
            "join",
            StreamKind.COMPUTE,
            "wait for %s, event %s".formatted(name, doneEvents.getOrDefault(k, -1)),
            name)
        .fact("collective", k)
        .build();
  }

  /** The predicted time for which compute runs beside a collective. */
  private double overlap(int number, int k, CollectivePlan collective) {
    int join = index.endOfCollective(k);
    double until = join > number ? times.begin().get(join) : times.end().get(number);
    double beside = Math.min(until, times.end().get(number)) - times.begin().get(number);
    return collective.isAsync() ? Math.max(0, beside) : 0;
  }

  private Row.Builder row(int number, String kind, StreamKind stream, String text, String name) {
    double micros = times.end().get(number) - times.begin().get(number);
    return Row.titled(Integer.toString(number))
        .details(
            stream.text(),
            String.format(Locale.ROOT, "%.1f", times.begin().get(number)),
            Units.micros(micros),
            text)
        .fact("step", number)
        .fact("kind", kind)
        .fact("stream", stream.text())
        .fact("name", name)
        .fact("what", text)
        .fact("begin_us", times.begin().get(number))
        .fact("duration_us", micros);
  }

  private String op(int op) {
    return index.plan().graph().ops().get(op).label();
  }

  private String standIn(String edge, Barrier barrier) {
    return barrier instanceof Barrier.StandIn
        ? ", %s barrier: %s".formatted(edge, CollectivesSection.barrierText(index, barrier))
        : "";
  }

  private String opText(int number) {
    Op op = index.plan().graph().ops().get(number);
    var results =
        op.results().stream()
            .filter(Value::isTensor)
            .map(
                v ->
                    RankIndex.printable(v.name())
                        + (index.plan().placement(v).exists() ? " at " : ", ")
                        + index.address(v))
            .collect(Collectors.joining(", "));
    return op.def().name() + (results.isEmpty() ? "" : " → " + results);
  }
}
