package dev.symplan.runtime.check;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.Op;
import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A graph with every float in f64, and every complex number in c128. */
final class Widening {
  private final List<Value> now = new ArrayList<>();

  private Widening() {}

  /**
   * {@return the graph; its ops and values are in the same order as the original's}
   *
   * @throws dev.symplan.ir.diag.CompileException when an op does not take f64
   * @throws RunException when an op reads the bits of a float, or gives a shape that depends on
   *     them
   */
  static Graph of(Graph graph) {
    return new Widening().widen(graph);
  }

  /** {@return the type in which a value is evaluated} */
  static TensorType of(TensorType type) {
    return type.withDType(of(type.dtype()));
  }

  private static DType of(DType dtype) {
    return switch (dtype.kind()) {
      case FLOAT -> DType.F64;
      case COMPLEX -> DType.C128;
      case INTEGER, BOOL -> dtype;
    };
  }

  private Graph widen(Graph graph) {
    var sink = new DiagnosticSink();
    var builder = new GraphBuilder(graph.name(), graph.span(), sink).ranks(graph.ranks());
    for (var input : graph.inputs()) {
      now.add(builder.input(input.name(), of(input.type()), input.span()));
    }
    for (var op : graph.ops()) {
      var specs = new ArrayList<ResultSpec>();
      for (var result : op.results()) {
        var annotation =
            op.def().rule().isPresent() ? Optional.<Type>empty() : Optional.of(of(result.type()));
        specs.add(new ResultSpec(result.name(), annotation, false, result.span()));
      }
      var args = op.args().stream().map(this::map).collect(ImmutableList.toImmutableList());
      var results = builder.op(op.def(), args, specs, op.span(), op.notes());
      sink.throwIfErrors();
      requireSameShapes(op, results);
      now.addAll(results);
    }
    graph.outputs().forEach(output -> builder.output(map(output)));
    return builder.build();
  }

  private static Type of(Type type) {
    return type instanceof TensorType tensor ? of(tensor) : type;
  }

  private Arg map(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> new Arg.Ref(now.get(value.id()));
      case Arg.Seq(ImmutableList<Arg> items) ->
          new Arg.Seq(items.stream().map(this::map).collect(ImmutableList.toImmutableList()));
      case Arg.Dtype(DType dtype) -> new Arg.Dtype(of(dtype));
      case Arg.Literal literal -> literal;
    };
  }

  private static void requireSameShapes(Op op, List<Value> results) {
    boolean same = results.size() == op.results().size();
    for (int i = 0; same && i < results.size(); i++) {
      same = isWidened(op.results().get(i).type(), results.get(i).type());
    }
    if (!same || op.def().name().toString().equals("aten::view.dtype")) {
      throw new RunException(
          "%s (%s) reads the bits of floats".formatted(op.def().name(), op.span().shortForm()));
    }
  }

  private static boolean isWidened(Type original, Type type) {
    return original instanceof TensorType from && type instanceof TensorType to
        ? to.sizes().equals(from.sizes()) && to.dtype() == of(from.dtype())
        : original.getClass() == type.getClass();
  }
}
