package dev.symplan.ir.joint;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Iterables;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.stream.Stream;

/**
 * One of the graphs that a joint graph runs one after the other: a range of its ops, of its inputs
 * and of its outputs. An op {@code symplan::border} stands before each but the first, and no op
 * moves across it. So a session can run each graph by itself.
 *
 * <p>An op {@code symplan::setup_end} may stand before the first graph. The ops before it are the
 * <i>setup</i> of the program: a session runs them once, before anything else.
 *
 * <p>All ranges are from the first index to the one after the last.
 *
 * @param name how sessions and people call it
 * @param firstOp after the border, or after the end of the setup
 * @param endOp the next border, or the number of ops
 */
public record ProgramGraph(
    String name,
    int firstOp,
    int endOp,
    int firstInput,
    int endInput,
    int firstOutput,
    int endOutput) {

  private static final OpDef BORDER = BuiltinOps.registry().get("symplan::border");
  private static final OpDef SETUP_END = BuiltinOps.registry().get("symplan::setup_end");

  public ProgramGraph {
    if (name.isEmpty() || firstOp > endOp || firstInput > endInput || firstOutput > endOutput) {
      throw new IllegalArgumentException(
          "the borders of graph '%s' are not in order".formatted(name));
    }
  }

  /** {@return whether an op is where the next graph begins} */
  public static boolean isBorder(Op op) {
    return op.def().has(OpTrait.BORDER) && !endsSetup(op);
  }

  /** {@return whether an op is where the setup ends, and the first graph begins} */
  public static boolean endsSetup(Op op) {
    return op.def().has(OpTrait.SETUP_END);
  }

  /** {@return the position of the op that ends the setup; -1 if the graph has none} */
  public static int setupEnd(Graph graph) {
    return Iterables.indexOf(graph.ops(), ProgramGraph::endsSetup);
  }

  /**
   * {@return whether what runs after a border needs nothing that the graphs before it make} Inputs
   * that were not donated stay as they are, whichever graphs run.
   */
  public static boolean isIndependent(Graph graph, int border) {
    var call = graph.ops().get(border).call();
    int inputs = Math.toIntExact(call.integer("inputs"));
    int outputs = Math.toIntExact(call.integer("outputs"));
    var kept = new HashSet<Value>();
    graph.inputs().stream()
        .filter(input -> !input.isTensor() || input.tensor().space() != MemorySpace.DONATED)
        .forEach(kept::add);
    kept.addAll(graph.inputs().subList(inputs, graph.inputs().size()));
    graph.ops().subList(0, Math.max(0, setupEnd(graph))).forEach(op -> kept.addAll(op.results()));
    for (var op : graph.ops().subList(border + 1, graph.ops().size())) {
      if (!kept.containsAll(op.operands())) {
        return false;
      }
      kept.addAll(op.results());
    }
    return graph.outputs().subList(outputs, graph.outputs().size()).stream()
        .allMatch(output -> kept.containsAll(output.operands()));
  }

  /**
   * {@return the op before a graph}
   *
   * @param inputs the number of inputs of the graphs before it
   * @param outputs the number of outputs of the graphs before it
   */
  public static Op border(String graph, int inputs, int outputs, Span span) {
    return new Op(
        BORDER,
        ImmutableList.of(new Arg.Str(graph), new Arg.Int(inputs), new Arg.Int(outputs)),
        ImmutableList.of(),
        span,
        Notes.NONE);
  }

  /**
   * {@return the op that ends the setup}
   *
   * @param weights the inputs that the setup reads, by name: they stay the same from run to run
   */
  public static Op setupEnd(Stream<String> weights, Span span) {
    var names = weights.<Arg>map(Arg.Str::new).collect(ImmutableList.toImmutableList());
    return new Op(
        SETUP_END, ImmutableList.of(new Arg.Seq(names)), ImmutableList.of(), span, Notes.NONE);
  }

  /** {@return the inputs that the setup reads, by name; {@code end} is the op that ends it} */
  public static ImmutableSet<String> weights(Op end) {
    return ((Arg.Seq) end.arg("weights"))
        .items().stream()
            .map(name -> ((Arg.Str) name).value())
            .collect(ImmutableSet.toImmutableSet());
  }

  /**
   * {@return the graphs that a graph consists of, in their order: itself if it has no borders}
   *
   * @throws IllegalArgumentException when its borders are not in order
   */
  public static ImmutableList<ProgramGraph> allOf(Graph graph) {
    var borders = new ArrayList<Integer>();
    int setupEnd = -1;
    for (int i = 0; i < graph.ops().size(); i++) {
      if (isBorder(graph.ops().get(i))) {
        borders.add(i);
      } else if (endsSetup(graph.ops().get(i))) {
        setupEnd = i;
      }
    }
    var graphs = ImmutableList.<ProgramGraph>builder();
    var name = graph.name();
    int op = setupEnd + 1;
    int input = 0;
    int output = 0;
    for (int border : borders) {
      var call = graph.ops().get(border).call();
      int nextInput = Math.toIntExact(call.integer("inputs"));
      int nextOutput = Math.toIntExact(call.integer("outputs"));
      graphs.add(new ProgramGraph(name, op, border, input, nextInput, output, nextOutput));
      name = call.string("graph");
      op = border + 1;
      input = nextInput;
      output = nextOutput;
    }
    graphs.add(
        new ProgramGraph(
            name,
            op,
            graph.ops().size(),
            input,
            graph.inputs().size(),
            output,
            graph.outputs().size()));
    return graphs.build();
  }
}
