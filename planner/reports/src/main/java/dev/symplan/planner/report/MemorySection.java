package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.Plan;
import java.util.Locale;

/** The arenas, each with the buffers in it: what a map of offsets over steps needs. */
final class MemorySection {
  private MemorySection() {}

  static Section of(Plan plan, RankIndex index) {
    var rows = ImmutableList.<Row>builder();
    for (var arena : Arenas.of(plan, index.plan())) {
      if (arena.bytes() > 0) {
        rows.add(row(index, arena));
      }
    }
    return new Section(
        View.MEMORY,
        index.ranks(),
        "",
        ImmutableList.of("arena", "size", "live at most", "when", "fragmented"),
        rows.build(),
        ImmutableList.of());
  }

  private static Row row(RankIndex index, Arenas arena) {
    var row =
        Row.titled(arena.arena().text())
            .details(
                Units.bytes(arena.bytes()),
                Units.bytes(arena.live()),
                index.when(arena.peakStep()),
                String.format(Locale.ROOT, "%.1f %%", arena.fragmentation()))
            .fact("arena", arena.arena().text())
            .fact("bytes", arena.bytes())
            .fact("bound_bytes", arena.bound())
            .fact("live_bytes", arena.live())
            .fact("peak_step", arena.peakStep())
            .fact("fragmentation_percent", arena.fragmentation())
            .fact("steps", index.plan().steps().size());
    var graphs = GraphSteps.of(index);
    if (graphs.size() > 1) {
      row.names("graphs", graphs.stream().map(GraphSteps::name).toList())
          .numbers("graph_steps", graphs.stream().map(GraphSteps::first).toList());
    }
    var buffers = index.plan().buffers();
    for (int b = 0; b < buffers.size(); b++) {
      var buffer = buffers.get(b);
      if (buffer.arena() == arena.arena() && buffer.bytes() > 0) {
        var child = Row.titled(RankIndex.printable(buffer.name()));
        ValuesSection.place(child, b, buffer, index);
        row.row(child.build());
      }
    }
    return row.build();
  }
}
