package dev.symplan.planner.report.render;

import com.google.common.base.CharMatcher;
import dev.symplan.planner.report.Fact;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.View;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Buffers as CSV: XLA's columns first, with its meanings (times are steps, lists are separated by
 * semicolons), so that what reads its buffer assignments reads ours, and then our own.
 */
public final class CsvRenderer {
  private static final String HEADER =
      "buffer_id,buffer_name,offset,size,definition_time,end_time,num_uses,use_times,use_names,"
          + "ranks,arena,symmetric,role,realization,reason,cause,source,type";

  private static final CharMatcher SPECIAL = CharMatcher.anyOf(",\"\n\r;");

  private CsvRenderer() {}

  /** {@return a line for each buffer; buffers of the caller's have no offset} */
  public static String render(PlanReport report) {
    var out = new StringBuilder(HEADER).append('\n');
    for (var section : report.sections(View.VALUES)) {
      var ranks = join(section.ranks());
      for (var row : section.rows()) {
        boolean external = row.text("arena").startsWith("external");
        var cells =
            List.of(
                Long.toString(row.whole("id")),
                quoted(row.text("name")),
                external ? "" : Long.toString(row.whole("offset")),
                Long.toString(row.whole("bytes")),
                number(row, "first"),
                number(row, "last"),
                Integer.toString(row.wholes("use_times").size()),
                quoted(join(row.wholes("use_times"))),
                quoted(String.join(";", row.texts("use_names"))),
                quoted(ranks),
                row.text("arena"),
                Boolean.toString(row.flag("symmetric")),
                row.text("role"),
                row.text("realization"),
                row.text("reason"),
                quoted(row.text("cause")),
                quoted(row.text("source")),
                quoted(row.text("type")));
        out.append(String.join(",", cells)).append('\n');
      }
    }
    return out.toString();
  }

  private static String number(Row row, String fact) {
    return row.facts().get(fact) instanceof Fact.Whole(long value) ? Long.toString(value) : "";
  }

  private static String join(List<Integer> numbers) {
    return numbers.stream().map(Object::toString).collect(Collectors.joining(";"));
  }

  private static String quoted(String text) {
    return SPECIAL.matchesNoneOf(text) ? text : "\"" + text.replace("\"", "\"\"") + "\"";
  }
}
