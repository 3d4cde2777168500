package dev.symplan.planner.report.render;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.Section;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/**
 * The rows of a graph section as nodes and edges.
 *
 * @param nodes in the graph's order, inputs first, the return last
 */
record GraphNodes(ImmutableList<Node> nodes) {

  /**
   * A node.
   *
   * @param id {@code n} and its number
   * @param segment how many collectives came before it
   * @param fused whether other ops run in the same step
   */
  record Node(String id, Row row, int segment, boolean fused, ImmutableList<Edge> edges) {
    boolean isCollective() {
      return !row.text("variant").isEmpty();
    }
  }

  /**
   * A value that a node takes from another.
   *
   * @param output its position among the results of {@code from}
   * @param value the row of the value
   */
  record Edge(Node from, int output, Row value) {}

  private record Definition(Node node, int output, Row value) {}

  static GraphNodes of(Section section) {
    var stepSizes = new HashMap<Long, Integer>();
    section.rows().forEach(row -> stepSizes.merge(row.whole("step"), 1, Integer::sum));
    var definitions = new HashMap<Integer, Definition>();
    var nodes = new ArrayList<Node>();
    int segment = 0;
    for (var row : section.rows()) {
      long step = row.whole("step");
      var node =
          new Node(
              "n" + nodes.size(),
              row,
              segment,
              step >= 0 && stepSizes.getOrDefault(step, 0) > 1,
              edges(row, definitions));
      nodes.add(node);
      if (node.isCollective()) {
        segment++;
      }
      for (int i = 0; i < row.rows().size(); i++) {
        var value = row.rows().get(i);
        definitions.put(Math.toIntExact(value.whole("value")), new Definition(node, i, value));
      }
    }
    return new GraphNodes(ImmutableList.copyOf(nodes));
  }

  /** Each value once, however often the op takes it. */
  private static ImmutableList<Edge> edges(Row row, Map<Integer, Definition> definitions) {
    var edges = ImmutableList.<Edge>builder();
    for (int id : new LinkedHashSet<>(row.wholes("operands"))) {
      var definition = definitions.get(id);
      if (definition != null) {
        edges.add(new Edge(definition.node(), definition.output(), definition.value()));
      }
    }
    return edges.build();
  }

  /** {@return the nodes that run in steps of several ops, by step} */
  Map<Long, List<Node>> fusedSteps() {
    var steps = new LinkedHashMap<Long, List<Node>>();
    for (var node : nodes) {
      if (node.fused()) {
        steps.computeIfAbsent(node.row().whole("step"), step -> new ArrayList<>()).add(node);
      }
    }
    return steps;
  }
}
