package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Parallel;
import dev.symplan.ir.graph.Graph;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * The last op that uses each storage: reads it, writes it or makes it. Views and waits do nothing
 * at run time, so they do not count.
 */
public final class Uses {
  private final AtomicIntegerArray last;
  private final boolean[] escapes;

  /** By storage, whether it is an input, escapes, or is what the setup leaves to each run. */
  private final boolean[] ofCaller;

  private Uses(AtomicIntegerArray last, boolean[] escapes, boolean[] ofCaller) {
    this.last = last;
    this.escapes = escapes;
    this.ofCaller = ofCaller;
  }

  static Uses of(Graph graph, Aliases aliases) {
    var none = new int[aliases.count()];
    Arrays.fill(none, -1);
    var last = new AtomicIntegerArray(none);
    Parallel.forEach(
        graph.ops().size(),
        (from, to) -> {
          for (int i = from; i < to; i++) {
            if (aliases.runs(i)) {
              int op = i;
              graph.ops().get(i).operands().forEach(value -> mark(last, aliases.id(value), op));
              graph.ops().get(i).results().forEach(value -> mark(last, aliases.id(value), op));
            }
          }
        });
    var escapes = new boolean[aliases.count()];
    for (var value : graph.outputValues()) {
      if (aliases.id(value) >= 0) {
        escapes[aliases.id(value)] = true;
      }
    }
    var ofCaller = escapes.clone();
    for (var input : graph.inputs()) {
      if (aliases.id(input) >= 0) {
        ofCaller[aliases.id(input)] = true;
      }
    }
    Setup.kept(graph, aliases).stream().forEach(storage -> ofCaller[storage] = true);
    return new Uses(last, escapes, ofCaller);
  }

  private static void mark(AtomicIntegerArray last, int storage, int op) {
    if (storage >= 0) {
      last.accumulateAndGet(storage, op, Math::max);
    }
  }

  /** {@return the last op that uses a storage; -1 for none} */
  public int lastOp(int storage) {
    return last.get(storage);
  }

  /** {@return whether a graph output is in the storage} */
  public boolean escapes(int storage) {
    return escapes[storage];
  }

  /**
   * {@return the last op that uses a storage; beyond all ops if the caller or the next run has it
   * then}
   */
  public int lastOpOrCaller(int storage) {
    return ofCaller[storage] ? Integer.MAX_VALUE : last.get(storage);
  }
}
