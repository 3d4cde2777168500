package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.report.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Measured times side by side, with what the planner would pick and what it predicts. */
public final class BenchTable {
  private BenchTable() {}

  /** {@return tables for a terminal} */
  public static String text(Points points, Target target) {
    var out = new StringBuilder();
    var comparisons = Comparison.of(points, target);
    for (var comparison : comparisons) {
      out.append(
          "%s of %s on %s%s: µs measured (predicted); * is the fastest, > the planner's pick\n"
              .formatted(
                  comparison.kind().text(),
                  comparison.dtype().isEmpty() ? "any type" : comparison.dtype(),
                  Units.count(comparison.ranks(), "rank"),
                  comparison.where().isEmpty() ? "" : ", " + comparison.where()));
      var rows =
          rows(
              comparison,
              "size",
              BenchTable::cell,
              "loss",
              row -> row.isPickMeasured() ? loss(row) : row.picked() + " was not measured");
      out.append(text(rows)).append('\n');
    }
    var together = together(points);
    if (!together.isEmpty()) {
      out.append(text(together)).append('\n');
    }
    return out.append(summary(comparisons)).toString();
  }

  private static String text(List<List<String>> rows) {
    var table = new Table(rows.getFirst().toArray(new String[0]));
    rows.subList(1, rows.size()).forEach(row -> table.row(row.toArray(new String[0])));
    return table.render();
  }

  /**
   * A header and a row for each size.
   *
   * @param cell of a row and the name of an implementation
   */
  private static List<List<String>> rows(
      Comparison comparison,
      String size,
      BiFunction<Comparison.Row, String, String> cell,
      String last,
      Function<Comparison.Row, String> judgement) {
    var rows = new ArrayList<List<String>>();
    var header = new ArrayList<>(List.of(size));
    header.addAll(comparison.implementations());
    header.add(last);
    rows.add(header);
    comparison
        .rows()
        .forEach(
            (bytes, row) -> {
              var cells = new ArrayList<>(List.of(Units.bytes(bytes)));
              comparison.implementations().forEach(name -> cells.add(cell.apply(row, name)));
              cells.add(judgement.apply(row));
              rows.add(cells);
            });
    return rows;
  }

  private static String cell(Comparison.Row row, String name) {
    var micros = row.micros().get(name);
    if (micros == null) {
      return "";
    }
    var predicted = row.predicted().get(name);
    return (name.equals(row.picked()) ? ">" : " ")
        + (name.equals(row.fastest()) ? "*" : " ")
        + number(micros)
        + (predicted == null ? "" : " (" + number(predicted) + ")");
  }

  private static String loss(Comparison.Row row) {
    double loss = row.loss();
    return !row.isPickMeasured()
        ? "not measured"
        : loss == 0
            ? ""
            : String.format(
                Locale.ROOT, "%.1f%%%s", 100 * loss, loss > Comparison.NOISE ? " !" : "");
  }

  /** {@return tables for a document, without predictions; the fastest is bold} */
  public static String markdown(Points points, Target target) {
    var out = new StringBuilder();
    var comparisons = Comparison.of(points, target);
    for (var comparison : comparisons) {
      markdown(
          out,
          rows(
              comparison,
              comparison.kind().text(),
              BenchTable::plainCell,
              "the planner's pick",
              row -> row.picked() + (row.loss() == 0 ? "" : ", " + loss(row))));
    }
    var together = together(points);
    if (!together.isEmpty()) {
      markdown(out, together);
    }
    return out.append(summary(comparisons)).toString();
  }

  private static String plainCell(Comparison.Row row, String name) {
    var micros = row.micros().get(name);
    if (micros == null) {
      return "";
    }
    return name.equals(row.fastest()) ? "**" + number(micros) + "**" : number(micros);
  }

  private static void markdown(StringBuilder out, List<List<String>> rows) {
    markdownRow(out, rows.getFirst());
    markdownRow(out, rows.getFirst().stream().map(_ -> "---").toList());
    rows.subList(1, rows.size()).forEach(row -> markdownRow(out, row));
    out.append('\n');
  }

  private static void markdownRow(StringBuilder out, List<String> cells) {
    out.append(
        cells.stream()
            .map(cell -> cell.replace("|", "\\|"))
            .collect(Collectors.joining(" | ", "| ", " |\n")));
  }

  /** A header and a row for each measurement of compute and a transfer side by side. */
  private static List<List<String>> together(Points points) {
    var rows = new ArrayList<List<String>>();
    for (var point : points.list()) {
      if (point.subject() instanceof Subject.Together t) {
        if (rows.isEmpty()) {
          rows.add(
              List.of(
                  "side by side", "compute alone", "transfer alone", "both", "of compute alone"));
        }
        rows.add(
            List.of(
                t.name(),
                number(t.computeMicros()),
                number(t.transferMicros()),
                number(point.micros()),
                String.format(Locale.ROOT, "%.3f", point.micros() / t.computeMicros())));
      }
    }
    return rows;
  }

  private static String summary(ImmutableList<Comparison> comparisons) {
    var rows =
        comparisons.stream()
            .flatMap(c -> c.rows().values().stream())
            .filter(row -> row.micros().size() > 1)
            .toList();
    if (rows.isEmpty()) {
      return "";
    }
    long first = rows.stream().filter(row -> row.loss() == 0).count();
    long near = rows.stream().filter(row -> row.loss() <= Comparison.NOISE).count();
    return "of %s, the planner picks the fastest in %s (%s), and one within 3%% of it in %s\n"
        .formatted(
            Units.count(rows.size(), "size"),
            first,
            String.format(Locale.ROOT, "%.1f%%", 100.0 * first / rows.size()),
            near);
  }

  private static String number(double micros) {
    return String.format(Locale.ROOT, "%.1f", micros);
  }
}
