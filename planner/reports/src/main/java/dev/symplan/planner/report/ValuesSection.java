package dev.symplan.planner.report;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Buffer;
import java.util.ArrayList;
import java.util.List;

/** Each buffer with its offset, its life and its reasons. */
final class ValuesSection {
  private final RankIndex index;

  private ValuesSection(RankIndex index) {
    this.index = index;
  }

  static Section of(RankIndex index) {
    var section = new ValuesSection(index);
    var rows = ImmutableList.<Row>builder();
    var buffers = index.plan().buffers();
    for (int b = 0; b < buffers.size(); b++) {
      if (buffers.get(b).bytes() > 0) {
        rows.add(section.row(b, buffers.get(b)));
      }
    }
    return new Section(
        View.VALUES,
        index.ranks(),
        "",
        ImmutableList.of("value", "memory", "size", "steps", "because"),
        rows.build(),
        ImmutableList.of());
  }

  private Row row(int id, Buffer buffer) {
    var uses = index.usesOf(id);
    var because = String.join("; ", reasons(id, buffer));
    var values = index.valuesOf(id);
    var row =
        Row.titled(RankIndex.printable(buffer.name()))
            .details(
                RankIndex.address(buffer, 0) + guest(buffer),
                Units.bytes(buffer.bytes()),
                buffer.first() + ".." + buffer.last(),
                because);
    place(row, id, buffer);
    row.fact("source", index.source(id))
        .numbers("use_times", uses.stream().map(RankIndex.Use::step).toList())
        .names("use_names", uses.stream().map(RankIndex.Use::name).toList())
        .names("values", values.stream().map(Value::name).toList());
    values.stream().findFirst().ifPresent(value -> type(row, value));
    index
        .decision(id)
        .ifPresent(
            decision ->
                row.fact("realization", Codes.of(decision.realization()))
                    .fact("reason", Codes.of(decision.reason()))
                    .fact("cause", decision.cause()));
    return row.fact("because", because).build();
  }

  private static void type(Row.Builder row, Value value) {
    if (value.type() instanceof TensorType tensor) {
      row.fact("type", tensor.toString());
    }
  }

  /** The columns of a buffer that the memory map has, too. */
  static void place(Row.Builder row, int id, Buffer buffer, RankIndex index) {
    row.fact("id", id)
        .fact("name", RankIndex.printable(buffer.name()))
        .fact("arena", buffer.arena().text())
        .fact("symmetric", buffer.symmetric())
        .fact("offset", buffer.offset())
        .fact("bytes", buffer.bytes())
        .fact("first", buffer.first())
        .fact("last", buffer.last())
        .fact("role", Ascii.toLowerCase(index.role(id).name()));
  }

  private void place(Row.Builder row, int id, Buffer buffer) {
    place(row, id, buffer, index);
  }

  private static String guest(Buffer buffer) {
    return buffer.arena() == ArenaKind.SYMMETRIC && !buffer.symmetric() ? " (local)" : "";
  }

  private List<String> reasons(int id, Buffer buffer) {
    var reasons = new ArrayList<String>();
    var plan = index.plan();
    if (index.role(id) == RankIndex.Role.WORKSPACE) {
      plan.collectives().stream()
          .filter(collective -> collective.workspace() == id)
          .findFirst()
          .ifPresent(
              collective ->
                  reasons.add(
                      "peers of group %s may store data there at any time"
                          .formatted(collective.group())));
    }
    for (var value : index.valuesOf(id)) {
      if (index.opOf(value).isEmpty()) {
        reasons.add(
            switch (buffer.arena()) {
              case SYMMETRIC -> "planned input: the caller fills it in the arena";
              case LOCAL -> "planned input";
              case HOST -> "planned input in the host's memory";
              case EXTERNAL_INPUT, EXTERNAL_OUTPUT -> "the caller's input";
            });
        break;
      }
    }
    index.decision(id).ifPresent(decision -> reasons.add(index.text(decision)));
    if (index.role(id) == RankIndex.Role.OUTPUT || index.role(id) == RankIndex.Role.INPUT) {
      for (Arg output : plan.graph().outputs()) {
        if (output instanceof Arg.Ref(Value value)
            && value.isTensor()
            && plan.placement(value).buffer() == id) {
          reasons.add(
              buffer.arena() == ArenaKind.EXTERNAL_OUTPUT
                  ? "the caller's output"
                  : "planned output " + value.name() + ": the caller reads it there, no copy");
          break;
        }
      }
    }
    return reasons;
  }
}
