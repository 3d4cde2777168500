package dev.symplan.planner.report.render;

import com.fasterxml.jackson.core.JsonGenerator;
import com.google.common.collect.ImmutableList;
import dev.symplan.planner.report.Fact;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;

/**
 * Writes the report of {@link JsonRenderer}, but with the facts of rows in columns and without the
 * words for people: a third of the size for large plans, and parsed in a quarter of the time.
 */
public final class JsonTables {
  private JsonTables() {}

  /** {@return a report as JSON with columns} */
  public static String render(PlanReport report) {
    return JsonText.columns(
        json -> {
          json.writeStartObject();
          JsonRenderer.head(json, report);
          json.writeArrayFieldStart("sections");
          for (var section : report.sections()) {
            json.writeStartObject();
            JsonRenderer.head(json, section);
            json.writeObjectFieldStart("table");
            table(json, section.rows());
            json.writeEndObject();
            json.writeEndObject();
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }

  private static void table(JsonGenerator json, List<Row> rows) throws IOException {
    var facts = new LinkedHashSet<String>();
    rows.forEach(row -> facts.addAll(row.facts().keySet()));
    json.writeNumberField("count", rows.size());
    json.writeObjectFieldStart("columns");
    column(
        json,
        "title",
        rows.stream().map(row -> Optional.<Fact>of(new Fact.Text(row.title()))).toList());
    for (var fact : facts) {
      column(
          json,
          fact,
          rows.stream().map(row -> Optional.ofNullable(row.facts().get(fact))).toList());
    }
    json.writeEndObject();
    var children = rows.stream().flatMap(row -> row.rows().stream()).toList();
    if (!children.isEmpty()) {
      var parents = ImmutableList.<Integer>builder();
      for (int i = 0; i < rows.size(); i++) {
        for (int child = 0; child < rows.get(i).rows().size(); child++) {
          parents.add(i);
        }
      }
      json.writeObjectFieldStart("rows");
      json.writeFieldName("parent");
      json.writeRawValue(numbers(parents.build()));
      table(json, children);
      json.writeEndObject();
    }
  }

  /** A cell for each row; where most repeat, the different ones and for each row which it is. */
  private static void column(JsonGenerator json, String name, List<Optional<Fact>> cells)
      throws IOException {
    var positions = new LinkedHashMap<Optional<Fact>, Integer>();
    cells.forEach(cell -> positions.putIfAbsent(cell, positions.size()));
    if (2 * positions.size() > cells.size()) {
      cells(json, name, cells);
      return;
    }
    json.writeObjectFieldStart(name);
    cells(json, "of", positions.keySet());
    json.writeFieldName("at");
    json.writeRawValue(numbers(cells.stream().map(positions::get).toList()));
    json.writeEndObject();
  }

  private static void cells(JsonGenerator json, String name, Iterable<Optional<Fact>> cells)
      throws IOException {
    json.writeArrayFieldStart(name);
    for (var cell : cells) {
      if (cell.isPresent()) {
        JsonText.value(json, cell.get());
      } else {
        json.writeNull();
      }
    }
    json.writeEndArray();
  }

  private static String numbers(List<Integer> numbers) {
    return numbers.toString().replace(" ", "");
  }
}
