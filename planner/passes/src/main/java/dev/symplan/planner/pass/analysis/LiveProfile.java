package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;

/**
 * The bytes of the plan's own memory that are live at each position of a graph, in its order and
 * before anything is placed. They measure the cost of letting tensors live longer.
 *
 * <p>A segment tree that adds to ranges and asks for their largest entry.
 */
public final class LiveProfile {
  private final Aliases aliases;

  /** By storage, the last position that uses it; beyond all if it escapes. */
  private final int[] lastUse;

  private final int size;
  private final long[] added;
  private final long[] most;
  private final long initialPeak;

  private LiveProfile(Analyses graph) {
    this.aliases = graph.aliases();
    var overlap = graph.overlap();
    this.lastUse = new int[aliases.count()];
    int positions = overlap.units().size() + 1;
    this.size = Math.max(1, Integer.highestOneBit(2 * positions - 1));
    this.added = new long[2 * size];
    this.most = new long[2 * size];
    collect(graph, positions);
    this.initialPeak = most[1];
  }

  /** {@return the live bytes at each unit of a graph, in its own order} */
  public static LiveProfile of(Analyses graph) {
    return new LiveProfile(graph);
  }

  private void collect(Analyses graph, int positions) {
    var overlap = graph.overlap();
    var first = new int[aliases.count()];
    for (var storage : aliases.storages()) {
      int last = graph.uses().lastOp(storage.id());
      first[storage.id()] = storage.isInput() ? -1 : graph.fusion().unitOf(storage.def());
      lastUse[storage.id()] =
          graph.uses().escapes(storage.id())
              ? positions
              : last < 0 ? -1 : graph.fusion().unitOf(last);
    }
    var replaced = replaced(overlap, first);
    var change = new long[positions + 1];
    for (var storage : aliases.storages()) {
      int from = first[storage.id()];
      if (!storage.isInput() && from >= 0) {
        int to = lastUse[storage.id()] + (replaced[storage.id()] ? 0 : 1);
        boolean passes = from + 1 == to && overlap.units().get(from).length() > 1;
        if (!passes) {
          change[from] += storage.bytes();
          change[Math.min(to, positions)] -= storage.bytes();
        }
      }
    }
    long live = 0;
    for (int p = 0; p < positions; p++) {
      live += change[p];
      most[size + p] = live;
    }
    for (int node = size - 1; node > 0; node--) {
      most[node] = Math.max(most[2 * node], most[2 * node + 1]);
    }
  }

  /** By storage, whether a result of the op that uses it last can take its memory. */
  private boolean[] replaced(OverlapWindows overlap, int[] first) {
    var replaced = new boolean[aliases.count()];
    for (int p = 0; p < overlap.units().size(); p++) {
      int position = p;
      var ops = aliases.graph().ops();
      overlap
          .units()
          .get(p)
          .forEach(
              index -> {
                var op = ops.get(index);
                if (op.def().has(OpTrait.ELEMENTWISE) || isAllReduce(op)) {
                  op.results().forEach(result -> replace(op, result, position, first, replaced));
                }
              });
    }
    return replaced;
  }

  private static boolean isAllReduce(Op op) {
    return op.def().collective().filter(spec -> spec.kind() == Kind.ALL_REDUCE).isPresent();
  }

  private void replace(Op op, Value result, int position, int[] first, boolean[] replaced) {
    boolean found = !result.isTensor();
    for (var operand : op.operands()) {
      int storage = aliases.id(operand);
      if (!found
          && storage >= 0
          && !replaced[storage]
          && lastUse[storage] == position
          && first[storage] < position
          && aliases.of(operand).bytes() == aliases.of(result).bytes()) {
        replaced[storage] = true;
        found = true;
      }
    }
  }

  /** {@return the last position that uses a value's storage; beyond all if it escapes} */
  public int lastUse(Value value) {
    return lastUse[aliases.id(value)];
  }

  /** {@return the most bytes live at once, before anything was added} */
  public long initialPeak() {
    return initialPeak;
  }

  /** {@return the most bytes live at once} */
  public long peak() {
    return most[1];
  }

  /**
   * Lets {@code bytes} more, or fewer, live at the positions from {@code from} to before {@code
   * to}.
   */
  public void add(int from, int to, long bytes) {
    if (from < to && bytes != 0) {
      add(1, 0, size, from, to, bytes);
    }
  }

  private void add(int node, int low, int high, int from, int to, long bytes) {
    if (from <= low && high <= to) {
      added[node] += bytes;
      most[node] += bytes;
      return;
    }
    int middle = (low + high) >>> 1;
    if (from < middle) {
      add(2 * node, low, middle, from, to, bytes);
    }
    if (middle < to) {
      add(2 * node + 1, middle, high, from, to, bytes);
    }
    most[node] = added[node] + Math.max(most[2 * node], most[2 * node + 1]);
  }
}
