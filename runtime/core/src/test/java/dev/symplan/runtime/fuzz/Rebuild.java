package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.Op;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Makes a graph of parts of others, with every rule applied anew. */
final class Rebuild {
  private Rebuild() {}

  /**
   * {@return the graph}
   *
   * @throws dev.symplan.ir.diag.CompileException when a rule refuses an op
   */
  static Graph graph(
      ImmutableIntArray ranks, List<Value> inputs, List<Op> ops, List<? extends Arg> outputs) {
    var sink = new DiagnosticSink();
    var builder = new GraphBuilder("fuzz", Span.NONE, sink).ranks(ranks);
    Map<Integer, Value> now = new HashMap<>();
    for (var input : inputs) {
      now.put(input.id(), builder.input(input.name(), input.type(), Span.NONE));
    }
    for (var op : ops) {
      var specs = new ArrayList<ResultSpec>();
      for (var result : op.results()) {
        specs.add(
            result.isTensor() && (op.def().rule().isEmpty() || result.annotated())
                ? new ResultSpec(
                    result.name(), Optional.of(result.type()), result.annotated(), Span.NONE)
                : ResultSpec.named(result.name(), Span.NONE));
      }
      var args =
          op.args().stream().map(arg -> map(arg, now)).collect(ImmutableList.toImmutableList());
      var made = builder.op(op.def(), args, specs, Span.NONE, Notes.NONE);
      sink.throwIfErrors();
      for (int i = 0; i < Math.min(made.size(), op.results().size()); i++) {
        now.put(op.results().get(i).id(), made.get(i));
      }
    }
    outputs.forEach(output -> builder.output(map(output, now)));
    sink.throwIfErrors();
    return builder.build();
  }

  static Arg map(Arg arg, Map<Integer, Value> now) {
    return switch (arg) {
      case Arg.Ref(Value value) -> {
        var mapped = now.get(value.id());
        if (mapped == null) {
          throw new IllegalArgumentException(value.name() + " is not there");
        }
        yield new Arg.Ref(mapped);
      }
      case Arg.Seq(ImmutableList<Arg> items) ->
          new Arg.Seq(
              items.stream().map(item -> map(item, now)).collect(ImmutableList.toImmutableList()));
      default -> arg;
    };
  }
}
