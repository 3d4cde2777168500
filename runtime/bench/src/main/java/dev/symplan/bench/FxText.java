package dev.symplan.bench;

import dev.symplan.ir.Arg;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpName;
import java.util.ArrayList;
import java.util.stream.Collectors;

/** Graphs as {@code gm.print_readable} writes them, as far as benchmarks have need of it. */
final class FxText {
  private final Graph graph;
  private final int[] lastUse;
  private final StringBuilder out = new StringBuilder();

  private FxText(Graph graph) {
    this.graph = graph;
    this.lastUse = new int[graph.valueCount()];
    for (int i = 0; i < graph.ops().size(); i++) {
      int position = i;
      graph.ops().get(i).operands().forEach(value -> lastUse[value.id()] = position);
    }
    graph.outputValues().forEach(value -> lastUse[value.id()] = graph.ops().size());
  }

  /** {@return the text of a graph of tensors} */
  static String of(Graph graph) {
    var text = new FxText(graph);
    text.write();
    return text.out.toString();
  }

  private void write() {
    out.append("class <lambda>(torch.nn.Module):\n    def forward(\n        self,\n");
    for (var input : graph.inputs()) {
      out.append("        ").append(annotated(input)).append(",\n");
    }
    out.append("    ):\n");
    for (int i = 0; i < graph.ops().size(); i++) {
      write(graph.ops().get(i), i);
    }
    out.append("        return (");
    graph.outputs().forEach(output -> out.append(text(output)).append(", "));
    out.append(")\n");
  }

  private void write(Op op, int position) {
    var call = call(op);
    if (op.results().size() == 1) {
      line(annotated(op.result()) + " = " + call);
    } else {
      var all = "all_" + op.results().getFirst().name();
      line(all + " = " + call);
      for (int i = 0; i < op.results().size(); i++) {
        line("%s = %s[%s]".formatted(annotated(op.results().get(i)), all, i));
      }
    }
    var dropped = new ArrayList<String>();
    for (var value : op.operands()) {
      if (lastUse[value.id()] == position && !dropped.contains(value.name())) {
        dropped.add(value.name());
      }
    }
    if (!dropped.isEmpty()) {
      out.setLength(out.length() - 1);
      out.append(";  ").append(String.join(" = ", dropped)).append(" = None\n");
    }
  }

  private void line(String statement) {
    out.append("        ").append(statement).append('\n');
  }

  private static String call(Op op) {
    OpName name = op.def().name();
    var overload = name.overload().isEmpty() ? "default" : name.overload();
    var params = op.def().schema().params();
    var args = new ArrayList<String>();
    for (int i = 0; i < params.size(); i++) {
      var arg = text(op.args().get(i));
      args.add(params.get(i).keywordOnly() ? params.get(i).name() + " = " + arg : arg);
    }
    return "torch.ops.%s.%s.%s(%s)"
        .formatted(name.namespace(), name.name(), overload, String.join(", ", args));
  }

  private static String annotated(Value value) {
    if (!(value.type() instanceof TensorType tensor)) {
      return value.name();
    }
    var dtype = tensor.dtype().shortName().equals("bool") ? "b8" : tensor.dtype().shortName();
    return "%s: \"%s%s%scuda:0\"".formatted(value.name(), dtype, tensor.sizes(), tensor.strides());
  }

  private static String text(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> value.name();
      case Arg.Device(String name) -> "device(type=" + PythonLiterals.quote(name) + ")";
      case Arg.Seq(var items) ->
          items.stream().map(FxText::text).collect(Collectors.joining(", ", "[", "]"));
      case Arg.Literal literal -> literal.text();
    };
  }
}
