package dev.symplan.planner.report.render;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.text.RankText;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.Section;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.GraphNodes.Node;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Planned graphs for Google's Model Explorer, in the JSON of its {@code graph_builder}, with what
 * the plan adds: attributes of nodes and tensors, colours of collectives, and an overlay of the
 * edges that run through symmetric memory. {@link #nodeData} gives numbers to colour nodes by.
 */
public final class ModelExplorerRenderer {
  private ModelExplorerRenderer() {}

  /** {@return a graph for each different graph of the plan} */
  public static String render(PlanReport report) {
    return JsonText.of(
        json -> {
          json.writeStartObject();
          json.writeStringField("label", report.name());
          json.writeArrayFieldStart("graphs");
          for (var section : report.sections(View.GRAPH)) {
            graph(json, report, section);
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }

  /** {@return the predicted µs of each node, as custom node data, by graph} */
  public static String nodeData(PlanReport report) {
    return JsonText.of(
        json -> {
          json.writeStartObject();
          for (var section : report.sections(View.GRAPH)) {
            json.writeObjectFieldStart(id(report, section));
            json.writeObjectFieldStart("results");
            for (var node : GraphNodes.of(section).nodes()) {
              if (node.row().whole("step") >= 0) {
                json.writeObjectFieldStart(node.id());
                json.writeNumberField("value", JsonText.rounded(node.row().real("duration_us")));
                json.writeEndObject();
              }
            }
            json.writeEndObject();
            json.writeArrayFieldStart("gradient");
            stop(json, 0, "#ffffff");
            stop(json, 1, "#d55e00");
            json.writeEndArray();
            json.writeEndObject();
          }
          json.writeEndObject();
        });
  }

  private static void stop(JsonGenerator json, int at, String colour) throws IOException {
    json.writeStartObject();
    json.writeNumberField("stop", at);
    json.writeStringField("bgColor", colour);
    json.writeEndObject();
  }

  private static String id(PlanReport report, Section section) {
    return report.sections(View.GRAPH).size() == 1
        ? report.name()
        : "%s of ranks %s".formatted(report.name(), RankText.list(section.ranks()));
  }

  private static void graph(JsonGenerator json, PlanReport report, Section section)
      throws IOException {
    var nodes = GraphNodes.of(section).nodes();
    json.writeStartObject();
    json.writeStringField("id", id(report, section));
    json.writeArrayFieldStart("nodes");
    for (var node : nodes) {
      node(json, node);
    }
    json.writeEndArray();
    json.writeObjectFieldStart("groupNodeAttributes");
    json.writeObjectFieldStart("");
    json.writeStringField("target", report.target());
    json.writeStringField("digest", report.digest());
    json.writeStringField("ranks", section.ranks().toString());
    json.writeEndObject();
    json.writeEndObject();
    overlays(json, nodes);
    json.writeEndObject();
  }

  private static void node(JsonGenerator json, Node node) throws IOException {
    var row = node.row();
    json.writeStartObject();
    json.writeStringField("id", node.id());
    json.writeStringField("label", label(row));
    json.writeStringField("namespace", namespace(node));
    json.writeArrayFieldStart("attrs");
    for (var attribute : attributes(row).entrySet()) {
      attribute(json, attribute.getKey(), attribute.getValue());
    }
    json.writeEndArray();
    json.writeArrayFieldStart("incomingEdges");
    for (int i = 0; i < node.edges().size(); i++) {
      var edge = node.edges().get(i);
      json.writeStartObject();
      json.writeStringField("sourceNodeId", edge.from().id());
      json.writeStringField("sourceNodeOutputId", Integer.toString(edge.output()));
      json.writeStringField("targetNodeInputId", Integer.toString(i));
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("outputsMetadata");
    for (int i = 0; i < row.rows().size(); i++) {
      var value = row.rows().get(i);
      json.writeStartObject();
      json.writeStringField("id", Integer.toString(i));
      json.writeArrayFieldStart("attrs");
      attribute(json, "__tensor_tag", value.title());
      attribute(json, "tensor_shape", value.text("type"));
      attribute(json, "place", value.text("place"));
      json.writeEndArray();
      json.writeEndObject();
    }
    json.writeEndArray();
    if (node.isCollective()) {
      json.writeObjectFieldStart("style");
      json.writeStringField("backgroundColor", "#e69f00");
      json.writeEndObject();
    }
    json.writeEndObject();
  }

  private static String label(Row row) {
    return switch (row.text("node")) {
      case "op" ->
          row.text("variant").isEmpty()
              ? row.text("op")
              : row.text("op") + " as " + row.text("variant");
      case "input" -> row.title();
      default -> "return";
    };
  }

  private static String namespace(Node node) {
    if (!node.row().text("node").equals("op")) {
      return "";
    }
    var segment = "segment " + node.segment();
    return node.fused() ? segment + "/step " + node.row().whole("step") + ", fused" : segment;
  }

  private static Map<String, String> attributes(Row row) {
    var attributes = new LinkedHashMap<String, String>();
    for (var name : List.of("source", "variant", "stream", "group")) {
      if (!row.text(name).isEmpty()) {
        attributes.put(name, row.text(name));
      }
    }
    if (row.whole("step") >= 0) {
      attributes.put("step", Long.toString(row.whole("step")));
      attributes.put("predicted", Units.micros(row.real("duration_us")));
    }
    return attributes;
  }

  private static void attribute(JsonGenerator json, String key, String value) throws IOException {
    json.writeStartObject();
    json.writeStringField("key", key);
    json.writeStringField("value", value);
    json.writeEndObject();
  }

  private static void overlays(JsonGenerator json, List<Node> nodes) throws IOException {
    json.writeObjectFieldStart("tasksData");
    json.writeArrayFieldStart("edgeOverlaysDataListLeftPane");
    json.writeStartObject();
    json.writeStringField("name", "plan");
    json.writeStringField("type", "edge_overlays");
    json.writeArrayFieldStart("overlays");
    json.writeStartObject();
    json.writeStringField("name", "symmetric memory");
    json.writeStringField("edgeColor", "#d55e00");
    json.writeArrayFieldStart("edges");
    for (var node : nodes) {
      for (var edge : node.edges()) {
        if (edge.value().flag("symmetric")) {
          json.writeStartObject();
          json.writeStringField("sourceNodeId", edge.from().id());
          json.writeStringField("targetNodeId", node.id());
          json.writeStringField("label", edge.value().text("place"));
          json.writeEndObject();
        }
      }
    }
    json.writeEndArray();
    json.writeEndObject();
    json.writeEndArray();
    json.writeEndObject();
    json.writeEndArray();
    json.writeEndObject();
  }
}
