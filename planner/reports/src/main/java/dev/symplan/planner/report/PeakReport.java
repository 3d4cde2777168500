package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.text.RankText;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * The contents of each arena at its peak, the largest first, and the reason why each must be there.
 */
final class PeakReport {
  /** Smaller buffers than these are only counted. */
  private static final int NAMED = 15;

  private PeakReport() {}

  /** {@return a section with a row for each arena, its buffers below it} */
  static Section of(Plan plan, ImmutableList<RankIndex> indices) {
    var rows = ImmutableList.<Row>builder();
    for (var index : indices) {
      for (var arena : Arenas.of(plan, index.plan())) {
        if (arena.bytes() > 0) {
          rows.add(arena(index, arena, indices.size() > 1));
        }
      }
    }
    return new Section(
        View.PEAK,
        PlanReport.ranksOf(plan),
        "",
        ImmutableList.of(),
        rows.build(),
        ImmutableList.of());
  }

  /** {@return the ids of the buffers that are live at the peak of any arena of a graph} */
  static List<Integer> live(Plan plan, RankIndex index) {
    var ids = new ArrayList<Integer>();
    for (var arena : Arenas.of(plan, index.plan())) {
      ids.addAll(live(index, arena));
    }
    return ids;
  }

  private static List<Integer> live(RankIndex index, Arenas arena) {
    var buffers = index.plan().buffers();
    var ids = new ArrayList<Integer>();
    for (int b = 0; b < buffers.size(); b++) {
      var buffer = buffers.get(b);
      if (buffer.arena() == arena.arena()
          && buffer.bytes() > 0
          && buffer.first() <= arena.peakStep()
          && buffer.last() >= arena.peakStep()) {
        ids.add(b);
      }
    }
    ids.sort(
        Comparator.comparingLong((Integer b) -> -buffers.get(b).bytes())
            .thenComparing(Comparator.naturalOrder()));
    return ids;
  }

  private static Row arena(RankIndex index, Arenas arena, boolean several) {
    var live = live(index, arena);
    var row =
        Row.titled(
                "%s arena%s: %s of %s live %s"
                    .formatted(
                        arena.arena().text(),
                        several ? " of ranks " + RankText.list(index.ranks()) : "",
                        Units.bytes(arena.live()),
                        Units.bytes(arena.bytes()),
                        index.when(arena.peakStep())))
            .fact("arena", arena.arena().text())
            .numbers("ranks", index.ranks())
            .fact("bytes", arena.bytes())
            .fact("live_bytes", arena.live())
            .fact("peak_step", arena.peakStep());
    long rest = 0;
    for (int i = 0; i < live.size(); i++) {
      var buffer = index.plan().buffers().get(live.get(i));
      if (i < NAMED) {
        row.row(buffer(index, live.get(i), buffer, arena));
      } else {
        rest += buffer.bytes();
      }
    }
    if (rest > 0) {
      row.row(
          Row.of(
              "and " + (live.size() - NAMED) + " more",
              "%s together".formatted(Units.bytes(rest))));
    }
    return row.build();
  }

  private static Row buffer(RankIndex index, int id, Buffer buffer, Arenas arena) {
    var because = why(index, id, buffer, arena.peakStep());
    return Row.titled(RankIndex.printable(buffer.name()))
        .details(
            Units.bytes(buffer.bytes()),
            String.format(Locale.ROOT, "%4.1f %%", 100.0 * buffer.bytes() / arena.live()),
            because)
        .fact("id", id)
        .fact("name", RankIndex.printable(buffer.name()))
        .fact("bytes", buffer.bytes())
        .fact("source", index.source(id))
        .fact("because", because)
        .build();
  }

  private static String why(RankIndex index, int id, Buffer buffer, int peak) {
    int end = index.plan().steps().size();
    var source = index.source(id).isEmpty() ? "" : " (" + index.source(id) + ")";
    var what =
        switch (index.role(id)) {
          case WORKSPACE -> "workspace: peers may store into it at any time";
          case INPUT ->
              buffer.last() >= end
                  ? "planned input, kept for the next run"
                  : "donated input, " + until(index, id, buffer, peak);
          case OUTPUT ->
              buffer.last() >= end ? "output, kept for the caller" : until(index, id, buffer, peak);
          case STAGING -> "copy for a collective, " + until(index, id, buffer, peak);
          case COLLECTIVE, TEMPORARY -> until(index, id, buffer, peak);
        };
    return what + source;
  }

  private static String until(RankIndex index, int id, Buffer buffer, int peak) {
    var next = index.usesOf(id).stream().filter(use -> use.step() >= peak).findFirst();
    var last = index.usesOf(id).stream().reduce((a, b) -> b);
    if (buffer.first() == peak) {
      return "written here"
          + last.map(use -> ", last read by %s in step %s".formatted(use.name(), use.step()))
              .orElse("");
    }
    if (next.isEmpty()) {
      return "in use until step " + buffer.last();
    }
    var use = next.get();
    var reads =
        use.step() == peak
            ? "read here by " + use.name()
            : "next read by %s in step %s".formatted(use.name(), use.step());
    return last.filter(l -> l.step() > use.step())
        .map(l -> "%s, last by %s in step %s".formatted(reads, l.name(), l.step()))
        .orElse(reads);
  }
}
