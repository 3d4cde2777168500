package dev.symplan.planner.report.render;

import dev.symplan.ir.text.RankText;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.GraphNodes.Node;
import java.util.List;

/**
 * Planned graphs for Graphviz: collectives in orange with their variants, fused steps in boxes,
 * edges thick where the value is in symmetric memory.
 */
public final class DotRenderer {
  private DotRenderer() {}

  /** {@return a digraph for each different graph} */
  public static String render(PlanReport report) {
    var out = new StringBuilder();
    for (var section : report.sections(View.GRAPH)) {
      var nodes = GraphNodes.of(section);
      out.append("digraph ").append(quoted(report.name())).append(" {\n");
      out.append("  label=")
          .append(
              quoted(
                  "%s · ranks %s · %s"
                      .formatted(report.name(), RankText.list(section.ranks()), report.target())))
          .append(";\n  node [fontname=\"sans-serif\", shape=box, style=filled,")
          .append(" fillcolor=\"#ffffff\"];\n  edge [fontname=\"sans-serif\", fontsize=9];\n");
      nodes
          .fusedSteps()
          .forEach(
              (step, fused) -> {
                out.append("  subgraph cluster_").append(step).append(" {\n");
                out.append("    label=").append(quoted("step " + step + ", fused")).append(";\n");
                fused.forEach(node -> node(out, "    ", node));
                out.append("  }\n");
              });
      nodes.nodes().stream().filter(node -> !node.fused()).forEach(node -> node(out, "  ", node));
      nodes.nodes().forEach(node -> edges(out, node));
      out.append("}\n");
    }
    return out.toString();
  }

  private static void node(StringBuilder out, String indent, Node node) {
    var row = node.row();
    out.append(indent).append(node.id()).append(" [label=");
    out.append(quoted(String.join("\n", label(row))));
    if (node.isCollective()) {
      out.append(", fillcolor=\"#e69f00\"");
    } else if (!row.text("node").equals("op")) {
      out.append(", shape=ellipse, fillcolor=\"#56b4e9\"");
    } else if (row.whole("step") < 0) {
      // Views and waits: nothing runs.
      out.append(", style=dashed");
    }
    out.append("];\n");
  }

  private static List<String> label(Row row) {
    if (row.text("node").equals("output")) {
      return List.of("return");
    }
    var what = row.text("op") + (row.text("variant").isEmpty() ? "" : " as " + row.text("variant"));
    return what.isEmpty() ? List.of(row.title()) : List.of(row.title(), what);
  }

  private static void edges(StringBuilder out, Node node) {
    for (var edge : node.edges()) {
      out.append("  ").append(edge.from().id()).append(" -> ").append(node.id());
      var address = edge.value().text("place");
      out.append(" [label=").append(quoted(address));
      out.append(edge.value().flag("symmetric") ? ", penwidth=2.5" : "").append("];\n");
    }
  }

  private static String quoted(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
  }
}
