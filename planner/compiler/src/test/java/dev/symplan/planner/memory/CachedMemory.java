package dev.symplan.planner.memory;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * A model, not a measurement, of the memory that PyTorch's allocator holds for a graph at once: ops
 * in the graph's own order, a tensor from the op that makes it to the last one that reads it or a
 * view of it. What the caller gives is not counted, what it gets is.
 *
 * <p>Eagerly, every op makes new tensors. Compiled by Inductor, elementwise ops write over an
 * operand of the same size that nothing reads any more, and so does an all_reduce; what one
 * elementwise op makes for one other never is in memory.
 */
final class CachedMemory {
  /** The allocator's blocks are multiples of this. */
  private static final long BLOCK = 512;

  private final Graph graph;
  private final boolean compiled;

  /** By value, the value whose memory it shows. */
  private final Map<Value, Value> owners = new HashMap<>();

  /** By owner, the last op that reads it; past the end for what the caller gets. */
  private final Map<Value, Integer> lastReads = new HashMap<>();

  private final Set<Value> inlined = new HashSet<>();

  private CachedMemory(Graph graph, boolean compiled) {
    this.graph = graph;
    this.compiled = compiled;
  }

  /** {@return the bytes that are held at once, eagerly or compiled, whichever are fewer} */
  static long peak(Graph graph) {
    return Math.min(
        new CachedMemory(graph, false).largest(), new CachedMemory(graph, true).largest());
  }

  private Value owner(Value value) {
    return owners.getOrDefault(value, value);
  }

  private void findOwners() {
    for (var op : graph.ops()) {
      var inferred = op.infer();
      for (int i = 0; i < op.results().size(); i++) {
        var view = inferred.get(i).view();
        if (view.isPresent() || op.def().has(OpTrait.WAIT)) {
          owners.put(op.results().get(i), owner(op.operands().getFirst()));
        }
      }
    }
  }

  /** Of a value that is not in memory, the op that reads it reads what it is made of. */
  private void findReads() {
    for (int i = 0; i < graph.ops().size(); i++) {
      for (var operand : graph.ops().get(i).operands()) {
        read(owner(operand), i);
      }
    }
    graph.outputValues().forEach(value -> read(owner(value), graph.ops().size()));
    for (int i = graph.ops().size() - 1; compiled && i >= 0; i--) {
      var op = graph.ops().get(i);
      if (isInlined(op)) {
        inlined.add(op.result());
        int reader = lastReads.get(op.result());
        op.operands().forEach(operand -> read(owner(operand), reader));
      }
    }
  }

  private void read(Value owner, int op) {
    lastReads.merge(owner, op, Math::max);
  }

  private boolean isInlined(Op op) {
    if (!isElementwise(op) || lastReads.getOrDefault(op.result(), -1) >= graph.ops().size()) {
      return false;
    }
    var readers =
        graph.ops().stream()
            .filter(other -> other.operands().stream().anyMatch(v -> owner(v) == op.result()))
            .toList();
    return readers.size() == 1 && isElementwise(readers.getFirst());
  }

  private static boolean isElementwise(Op op) {
    return op.def().has(OpTrait.ELEMENTWISE) && op.results().size() == 1;
  }

  private long largest() {
    findOwners();
    findReads();
    var live = new HashMap<Value, Long>();
    long held = 0;
    long most = 0;
    for (int i = 0; i < graph.ops().size(); i++) {
      int here = i;
      var op = graph.ops().get(i);
      long made = 0;
      for (var result : op.results()) {
        if (result.isTensor() && owner(result) == result && !inlined.contains(result)) {
          long bytes = Math.ceilDiv(result.tensor().storageBytes(), BLOCK) * BLOCK;
          live.put(result, bytes);
          made += bytes;
        }
      }
      long over = compiled && writesOver(op) ? dying(op, live, here, made) : 0;
      most = Math.max(most, held + made - over);
      held += made;
      var ended =
          live.keySet().stream().filter(v -> lastReads.getOrDefault(v, -1) <= here).toList();
      for (var value : ended) {
        held -= live.remove(value);
      }
    }
    return most;
  }

  private static boolean writesOver(Op op) {
    return isElementwise(op)
        || op.collective().filter(call -> call.kind() == Kind.ALL_REDUCE).isPresent();
  }

  /** {@return the bytes of an operand that the result can be written over} */
  private long dying(Op op, Map<Value, Long> live, int here, long made) {
    return op.operands().stream()
            .map(this::owner)
            .anyMatch(
                operand ->
                    live.getOrDefault(operand, -1L) == made
                        && lastReads.getOrDefault(operand, -1) == here)
        ? made
        : 0;
  }
}
