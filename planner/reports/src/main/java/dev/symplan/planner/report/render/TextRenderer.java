package dev.symplan.planner.report.render;

import com.google.common.base.Strings;
import dev.symplan.ir.text.RankText;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.Section;
import dev.symplan.planner.report.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Reports for people: tables, rows below rows, and a map of the memory. */
public final class TextRenderer {

  /** The width, in columns, that is assumed for a terminal of unknown width. */
  public static final int USUAL_WIDTH = 100;

  private static final String INDENT = "  ";

  private final int width;
  private final boolean colour;

  private TextRenderer(int width, boolean colour) {
    this.width = width;
    this.colour = colour;
  }

  /** {@return the report as text without colours, lines ended by line feeds} */
  public static String render(PlanReport report) {
    return render(report, USUAL_WIDTH, false);
  }

  /**
   * {@return the report as text}
   *
   * @param width the columns that maps may take
   * @param colour whether maps have colours (ANSI)
   */
  public static String render(PlanReport report, int width, boolean colour) {
    var renderer = new TextRenderer(width, colour);
    boolean several =
        report.sections().stream().map(Section::ranks).distinct().count() > 1
            && report.sections().stream().anyMatch(s -> s.ranks().size() < report.ranks());
    return report.sections().stream()
        .map(
            section ->
                renderer.section(section, several && section.ranks().size() < report.ranks()))
        .filter(text -> !text.isEmpty())
        .collect(Collectors.joining("\n"));
  }

  /** {@return a row alone, with what belongs to it below, indented} */
  public static String row(Row row) {
    return rows(List.of(row));
  }

  /** {@return rows alone, with what belongs to them below, indented} */
  public static String rows(List<Row> rows) {
    var out = new StringBuilder();
    list(out, rows, "");
    return out.toString();
  }

  private String section(Section section, boolean named) {
    var body =
        switch (section.view()) {
          case GRAPH, CODE -> "";
          case MEMORY -> MemoryMap.render(section, width, colour);
          case PEAK -> rows(section.rows());
          case SUMMARY, COLLECTIVES, VALUES, SCHEDULE -> body(section);
        };
    var out = new StringBuilder();
    out.append(section.heading()).append(section.heading().isEmpty() ? "" : "\n");
    out.append(body);
    if (!section.lines().isEmpty()) {
      out.append(body.isEmpty() ? "" : "\n")
          .append(String.join("\n", section.lines()))
          .append('\n');
    }
    return named && !out.isEmpty()
        ? "ranks " + RankText.list(section.ranks()) + "\n" + out
        : out.toString();
  }

  private static String body(Section section) {
    if (section.rows().isEmpty()) {
      return "";
    }
    return section.columns().isEmpty() ? summary(section.rows()) : table(section);
  }

  /** Rows with their details after their titles; their facts are for programs. */
  private static String summary(List<Row> rows) {
    int longest = rows.stream().mapToInt(row -> row.title().length()).max().orElse(0);
    return rows.stream()
        .map(
            row ->
                Strings.padEnd(row.title(), longest + 1, ' ')
                    + String.join(INDENT, row.details())
                    + "\n")
        .collect(Collectors.joining());
  }

  private static String table(Section section) {
    var table = new Table(section.columns().toArray(String[]::new));
    var below = new ArrayList<String>();
    for (var row : section.rows()) {
      var cells = new ArrayList<String>();
      cells.add(row.title());
      cells.addAll(row.details());
      table.row(cells.toArray(String[]::new));
      var children = new StringBuilder();
      list(children, row.rows(), INDENT + INDENT);
      below.add(children.toString());
    }
    var lines = table.render().lines().toList();
    var out = new StringBuilder(lines.getFirst()).append('\n');
    for (int i = 0; i < below.size(); i++) {
      out.append(lines.get(i + 1)).append('\n').append(below.get(i));
    }
    return out.toString();
  }

  private static void list(StringBuilder out, List<Row> rows, String indent) {
    int longest =
        rows.stream()
            .filter(row -> !row.details().isEmpty())
            .mapToInt(row -> row.title().length())
            .max()
            .orElse(0);
    for (var row : rows) {
      var line =
          row.details().isEmpty()
              ? indent + row.title()
              : indent
                  + Strings.padEnd(row.title(), longest, ' ')
                  + INDENT
                  + String.join(INDENT, row.details());
      out.append(line.stripTrailing()).append('\n');
      list(out, row.rows(), indent + INDENT);
    }
  }
}
