package dev.symplan.planner.report.render;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.report.Fact;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Section;
import dev.symplan.planner.report.View;

/** The predicted schedule as a trace for Perfetto. */
public final class TraceRenderer {
  private TraceRenderer() {}

  /** {@return a process for each rank, with a thread for each stream that has work} */
  public static String render(PlanReport report) {
    var trace =
        new ChromeTrace(
            ImmutableMap.of(
                "plan", new Fact.Text(report.name()),
                "target", new Fact.Text(report.target()),
                "digest", new Fact.Text(report.digest()),
                "method", new Fact.Text("predicted")));
    var sections = report.sections(View.SCHEDULE);
    for (int rank = 0; rank < report.ranks(); rank++) {
      trace.process(rank, "rank %s of %s, predicted".formatted(rank, report.name()));
      for (var section : sections) {
        if (section.ranks().contains(rank)) {
          rank(trace, rank, section);
        }
      }
    }
    return trace.toJson();
  }

  private static void rank(ChromeTrace trace, int rank, Section section) {
    for (var stream : StreamKind.values()) {
      var own =
          section.rows().stream().filter(row -> row.text("stream").equals(stream.text())).toList();
      if (own.isEmpty()) {
        continue;
      }
      trace.thread(rank, stream.ordinal(), stream.text());
      for (var row : own) {
        trace.slice(
            rank,
            stream.ordinal(),
            row.text("name"),
            category(row.text("kind")),
            row.real("begin_us"),
            row.real("duration_us"),
            ImmutableMap.of(
                "step", new Fact.Whole(row.whole("step")),
                "what", new Fact.Text(row.text("what"))));
      }
    }
  }

  private static String category(String kind) {
    return switch (kind) {
      case "start" -> "collective";
      case "join" -> "wait";
      default -> "compute";
    };
  }
}
