package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.order.MemoryProfile;
import dev.symplan.planner.pass.order.WorkUnits;
import dev.symplan.planner.pass.rewrite.Repeatable.Repeat;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Computes elementwise ops again in the kernel that reads what they make, from tensors that take
 * less memory: the gradient of {@code gelu} from its operand in 16 bits, rather than from its parts
 * in f32. These need no memory then. {@link Repeatable} says what pays.
 */
public final class RepeatElementwise {
  /** Ops that run again may become a kernel with others, which then reads less. */
  private static final int MAX_ROUNDS = 4;

  private RepeatElementwise() {}

  /** {@return the state with ops that run again} */
  public static GraphState repeated(GraphState state, PassContext context) {
    return context.options().fusion() ? state.mapGraphs(RepeatElementwise::all) : state;
  }

  private static Graph all(Analyses given) {
    var now = given;
    for (int round = 0; round < MAX_ROUNDS; round++) {
      var next = given.of(repeated(now));
      if (next.graph() == now.graph()) {
        break;
      }
      now = next;
    }
    return now.graph();
  }

  /** Fusion decides in the end: what does not become part of a kernel is not repeated. */
  private static Graph repeated(Analyses own) {
    var repeats = new Repeatable(own).find();
    while (!repeats.isEmpty()) {
      var made = new Repeating(own, repeats);
      var graph = own.of(Normalize.removeDeadCode(made.graph()));
      var inMemory = inMemory(graph);
      var joined = repeats.stream().filter(repeat -> made.isJoined(repeat, inMemory)).toList();
      if (joined.size() == repeats.size()) {
        return peak(graph) <= peak(own) ? graph.graph() : own.graph();
      }
      repeats = ImmutableList.copyOf(joined);
    }
    return own.graph();
  }

  /** {@return by id, whether a value is that of a tensor in memory} */
  private static BitSet inMemory(Analyses own) {
    var inMemory = new BitSet(own.graph().valueCount());
    for (var op : own.graph().ops()) {
      for (var result : op.results()) {
        int storage = own.aliases().id(result);
        inMemory.set(result.id(), storage >= 0 && !own.fusion().isPassing(storage));
      }
    }
    return inMemory;
  }

  private static long peak(Analyses own) {
    var units = WorkUnits.of(own);
    return MemoryProfile.of(units, units.given()).peak();
  }

  /** The graph in which ops are repeated. */
  private static final class Repeating {
    private final Analyses own;
    private final GraphCopier copier;
    private final ListMultimap<Repeat, Value> again =
        MultimapBuilder.hashKeys().arrayListValues().build();
    private final Graph graph;

    Repeating(Analyses own, List<Repeat> repeats) {
      this.own = own;
      this.copier = new GraphCopier(own.graph());
      ListMultimap<Integer, Repeat> before = MultimapBuilder.hashKeys().arrayListValues().build();
      var units = own.fusion().units();
      for (var repeat : repeats) {
        repeat.readers().forEach(unit -> before.put(units.get(unit).get(0), repeat));
      }
      var ops = own.graph().ops();
      for (int i = 0; i < ops.size(); i++) {
        before.get(i).forEach(this::repeat);
        copier.keep(ops.get(i));
      }
      this.graph = copier.finish();
    }

    Graph graph() {
      return graph;
    }

    private void repeat(Repeat repeat) {
      Map<Value, Value> made = new HashMap<>();
      for (int index : repeat.ops()) {
        var op = own.graph().ops().get(index);
        var result =
            copier.insert(
                op.def(),
                op.args().stream()
                    .map(arg -> arg.map(value -> made.getOrDefault(value, copier.now(value))))
                    .collect(toImmutableList()),
                op.label() + "_again",
                op.result().type(),
                op.span());
        made.put(op.result(), result);
        again.put(repeat, result);
      }
      repeat.given().forEach(value -> copier.replace(value, made.getOrDefault(value, value)));
    }

    /** Whether all that is made again, and what it takes the place of, needs no memory. */
    boolean isJoined(Repeat repeat, BitSet inMemory) {
      return again.get(repeat).stream().noneMatch(value -> inMemory.get(value.id()))
          && repeat.given().stream().noneMatch(value -> inMemory.get(value.id()));
    }
  }
}
