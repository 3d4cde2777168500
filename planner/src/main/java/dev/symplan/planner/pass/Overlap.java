package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Graph;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Between which ops a collective may run: from where its operands are ready to where its results
 * are first read, and how much compute lies there.
 *
 * <p>Positions count the ops that do something at run time, in the graph's order.
 */
final class Overlap {

  /**
   * The room of one collective.
   *
   * @param earliest the first position at which it may start
   * @param given its position in the graph's order
   * @param needed the position of the first op that reads a result; the number of ops if none does
   */
  record Window(int earliest, int given, int needed) {}

  private final int[] ops;
  private final double[] computeBefore;
  private final ImmutableList<Window> windows;

  private Overlap(int[] ops, double[] computeBefore, ImmutableList<Window> windows) {
    this.ops = ops;
    this.computeBefore = computeBefore;
    this.windows = windows;
  }

  static Overlap of(
      Graph graph, Aliases aliases, ImmutableList<Collective> collectives, CostModel costs) {
    int[] ops = runningOps(graph, aliases);
    var computeBefore = new double[ops.length + 1];
    var written = new int[aliases.count()];
    Arrays.fill(written, -1);
    var windows = new Window[collectives.size()];
    var resultOf = new int[aliases.count()];
    Arrays.fill(resultOf, -1);
    var byCollective = new boolean[aliases.count()];
    int next = 0;
    // The collectives before this one are closed: old memory was written since.
    int open = 0;
    for (int p = 0; p < ops.length; p++) {
      int position = p;
      var op = graph.ops().get(ops[p]);
      op.forEachOperand(value -> close(windows, resultOf, aliases.id(value), position));
      boolean collective = next < collectives.size() && collectives.get(next).index() == ops[p];
      computeBefore[p + 1] = computeBefore[p] + (collective ? 0 : costs.computeMicros(op));
      if (collective) {
        int ready = 0;
        for (var operand : collectives.get(next).operands()) {
          // A collective that waits for another has nowhere to go.
          ready =
              Math.max(
                  ready, byCollective[aliases.id(operand)] ? p : written[aliases.id(operand)] + 1);
        }
        windows[next] = new Window(ready, p, ops.length);
        for (var result : op.results()) {
          if (aliases.id(result) >= 0) {
            resultOf[aliases.id(result)] = next;
            byCollective[aliases.id(result)] = true;
          }
        }
        next++;
      }
      boolean mutates = op.def().schema().mutates();
      if (mutates) {
        op.forEachOperand(value -> mark(written, aliases.id(value), position));
        closeAll(windows, open, next, position);
        open = collective ? next - 1 : next;
      }
      op.results().forEach(value -> mark(written, aliases.id(value), position));
    }
    return new Overlap(ops, computeBefore, ImmutableList.copyOf(windows));
  }

  private static void mark(int[] written, int storage, int position) {
    if (storage >= 0) {
      written[storage] = position;
    }
  }

  private static void close(Window[] windows, int[] resultOf, int storage, int position) {
    if (storage >= 0 && resultOf[storage] >= 0) {
      int k = resultOf[storage];
      int needed = Math.min(windows[k].needed(), position);
      windows[k] = new Window(windows[k].earliest(), windows[k].given(), needed);
      resultOf[storage] = -1;
    }
  }

  /** An op that writes into old memory may write what a collective still reads. */
  private static void closeAll(Window[] windows, int open, int count, int position) {
    for (int k = open; k < count; k++) {
      if (windows[k].needed() > position && windows[k].given() < position) {
        windows[k] = new Window(windows[k].earliest(), windows[k].given(), position);
      }
    }
  }

  private static int[] runningOps(Graph graph, Aliases aliases) {
    List<Integer> running = new ArrayList<>();
    for (int i = 0; i < graph.ops().size(); i++) {
      if (!aliases.isView(i) && !graph.ops().get(i).def().has(OpTrait.WAIT)) {
        running.add(i);
      }
    }
    return running.stream().mapToInt(i -> i).toArray();
  }

  /** {@return the graph's ops that do something at run time, by position} */
  int[] ops() {
    return ops;
  }

  Window window(int collective) {
    return windows.get(collective);
  }

  /** {@return the predicted compute between two positions, collectives not counted, in µs} */
  double computeBetween(int from, int to) {
    return computeBefore[to] - computeBefore[from];
  }

  /** {@return the compute that could run beside a collective at best, in µs} */
  double room(int collective) {
    var window = windows.get(collective);
    return computeBetween(window.earliest(), window.needed());
  }
}
