package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.runtime.Session;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;

/**
 * A random program of one rank that writes over nothing and gives out all that it computes, so that
 * each op can be checked by itself. For tests of other backends than the host's.
 */
public final class LocalProgram {
  private final Graph graph;
  private final ImmutableMap<String, Fill> fills;
  private final long seed;

  private LocalProgram(Graph graph, ImmutableMap<String, Fill> fills, long seed) {
    this.graph = graph;
    this.fills = fills;
    this.seed = seed;
  }

  /** {@return the ops that programs are made of} */
  public static ImmutableList<OpDef> ops() {
    return ExecutableOps.all().stream()
        .filter(op -> op.collective().isEmpty() && !op.schema().mutates())
        .filter(op -> !op.name().namespace().startsWith("_c10d"))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the program of a seed; all ops get their turn as seeds go by} */
  public static LocalProgram make(ImmutableList<OpDef> ops, long seed) {
    var random = new SplittableRandom(seed);
    random.nextLong();
    var sketch = new Sketch(random, 1);
    for (int i = 1 + random.nextInt(2); i > 0; i--) {
      sketch.input(sketch.dtype(), sketch.shape(), Fill.ANY);
    }
    for (int i = 3 + random.nextInt(10); i > 0; i--) {
      var next = ops.get((int) Math.floorMod(seed * 3 + i, (long) ops.size()));
      try {
        Generator.local(sketch, next);
      } catch (Sketch.Refused e) {
        // Another one follows.
      }
    }
    var made = sketch.graphs(List.of(ImmutableIntArray.of())).getFirst();
    return new LocalProgram(givingAll(made.inputs(), made.ops()), sketch.fills(), seed);
  }

  private static Graph givingAll(List<Value> inputs, List<Op> ops) {
    var outputs =
        ops.stream()
            .flatMap(op -> op.results().stream())
            .filter(Value::isTensor)
            .map(Arg.Ref::new)
            .toList();
    return Rebuild.graph(ImmutableIntArray.of(), inputs, ops, outputs);
  }

  /** {@return it without the op that makes a value, and without what needs that op} */
  public Optional<LocalProgram> without(String value) {
    var gone = new HashSet<Integer>();
    var kept = new ArrayList<Op>();
    for (var op : graph.ops()) {
      if (op.results().stream().anyMatch(result -> result.name().equals(value))
          || op.operands().stream().anyMatch(operand -> gone.contains(operand.id()))) {
        op.results().forEach(result -> gone.add(result.id()));
      } else {
        kept.add(op);
      }
    }
    return gone.isEmpty() || kept.isEmpty()
        ? Optional.empty()
        : Optional.of(new LocalProgram(givingAll(graph.inputs(), kept), fills, seed));
  }

  /** {@return the graph, whose outputs are the tensors that its ops give, in their order} */
  public Graph graph() {
    return graph;
  }

  /** {@return the program of this graph} */
  public Program program() {
    return new Program(ImmutableList.of(), ImmutableList.of(), ImmutableList.of(graph), Notes.NONE);
  }

  /** Writes the inputs. */
  public void fill(Session session) {
    Differential.fill(session, fills, seed);
  }

  @Override
  public String toString() {
    return "seed %s%n%sinputs: %s%n".formatted(seed, GraphPrinter.print(program()), fills);
  }
}
