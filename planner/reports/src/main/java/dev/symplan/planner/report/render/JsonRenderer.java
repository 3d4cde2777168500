package dev.symplan.planner.report.render;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.Section;
import java.io.IOException;
import java.util.List;

/**
 * Reports as JSON, for programs and for the page that shows them: {@code docs/report.md} describes
 * the fields. Fields are added within a version; none goes or changes its meaning.
 */
public final class JsonRenderer {
  static final String FORMAT = "symplan-report";
  static final int VERSION = 1;

  private JsonRenderer() {}

  /** {@return the report as JSON; the same bytes for the same report, everywhere} */
  public static String render(PlanReport report) {
    return JsonText.of(
        json -> {
          json.writeStartObject();
          head(json, report);
          json.writeArrayFieldStart("sections");
          for (var section : report.sections()) {
            section(json, section);
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }

  static void head(JsonGenerator json, PlanReport report) throws IOException {
    json.writeStringField("format", FORMAT);
    json.writeNumberField("version", VERSION);
    json.writeStringField("name", report.name());
    json.writeStringField("target", report.target());
    json.writeStringField("digest", report.digest());
    json.writeNumberField("ranks", report.ranks());
    json.writeFieldName("plan_of_rank");
    json.writeRawValue(report.planOfRank().toString());
  }

  static void head(JsonGenerator json, Section section) throws IOException {
    json.writeStringField("view", section.view().text());
    json.writeFieldName("ranks");
    json.writeRawValue(section.ranks().toString());
    json.writeStringField("heading", section.heading());
  }

  private static void section(JsonGenerator json, Section section) throws IOException {
    json.writeStartObject();
    head(json, section);
    strings(json, "columns", section.columns());
    rows(json, section.rows());
    strings(json, "lines", section.lines());
    json.writeEndObject();
  }

  private static void rows(JsonGenerator json, List<Row> rows) throws IOException {
    json.writeArrayFieldStart("rows");
    for (var row : rows) {
      json.writeStartObject();
      json.writeStringField("title", row.title());
      if (!row.details().isEmpty()) {
        strings(json, "details", row.details());
      }
      if (!row.facts().isEmpty()) {
        json.writeObjectFieldStart("facts");
        JsonText.fields(json, row.facts());
        json.writeEndObject();
      }
      if (!row.rows().isEmpty()) {
        rows(json, row.rows());
      }
      json.writeEndObject();
    }
    json.writeEndArray();
  }

  private static void strings(JsonGenerator json, String name, List<String> texts)
      throws IOException {
    json.writeArrayFieldStart(name);
    for (var text : texts) {
      json.writeString(text);
    }
    json.writeEndArray();
  }
}
