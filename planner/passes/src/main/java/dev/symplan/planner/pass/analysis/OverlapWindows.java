package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import java.util.Arrays;

/**
 * Between which ops a collective may run: from where its operands are ready to where its results
 * are first read, and how much compute lies there.
 *
 * <p>Positions count what runs as one step ({@link Fusion#units}), in the graph's order.
 */
public final class OverlapWindows {

  /**
   * The room of one collective.
   *
   * @param earliest the first position at which it may start
   * @param given its position in the graph's order
   * @param needed the position of the first op that reads a result; the number of positions if none
   *     does
   */
  public record Window(int earliest, int given, int needed) {}

  private final ImmutableList<ImmutableIntArray> units;
  private final double[] computeBefore;

  /** Without the time in which kernels start: a collective beside them gains nothing from that. */
  private final double[] workBefore;

  private final ImmutableList<Window> windows;

  private OverlapWindows(
      ImmutableList<ImmutableIntArray> units,
      double[] computeBefore,
      double[] workBefore,
      ImmutableList<Window> windows) {
    this.units = units;
    this.computeBefore = computeBefore;
    this.workBefore = workBefore;
    this.windows = windows;
  }

  static OverlapWindows of(Analyses analyses, CostModel costs) {
    var graph = analyses.graph();
    var aliases = analyses.aliases();
    var collectives = analyses.collectives();
    var units = analyses.fusion().units();
    var computeBefore = new double[units.size() + 1];
    var workBefore = new double[units.size() + 1];
    var written = new int[aliases.count()];
    Arrays.fill(written, -1);
    // Storages that may share memory with a collective's result are not used beside it either.
    var used = new int[aliases.count()];
    Arrays.fill(used, -1);
    var windows = new Window[collectives.size()];
    var resultOf = new int[aliases.count()];
    Arrays.fill(resultOf, -1);
    var byCollective = new boolean[aliases.count()];
    var unitMicros = new double[units.size()];
    Parallel.forEach(
        unitMicros.length,
        (from, to) -> {
          for (int p = from; p < to; p++) {
            unitMicros[p] = micros(units.get(p), analyses, costs);
          }
        });
    int next = 0;
    // The collectives before this one are closed: old memory was written since.
    int open = 0;
    // No collective starts before a fence, or runs beside it.
    int fence = 0;
    for (int p = 0; p < units.size(); p++) {
      int position = p;
      var unit = units.get(p);
      var op = graph.ops().get(unit.get(0));
      unit.forEach(
          index ->
              graph
                  .ops()
                  .get(index)
                  .operands()
                  .forEach(v -> close(windows, resultOf, aliases.family(v), position)));
      boolean collective =
          next < collectives.size() && collectives.get(next).index() == unit.get(0);
      double micros = collective ? 0 : unitMicros[p];
      computeBefore[p + 1] = computeBefore[p] + micros;
      workBefore[p + 1] = workBefore[p] + Math.max(0, micros - costs.rampMicros());
      if (collective) {
        int ready = fence;
        for (var operand : collectives.get(next).operands()) {
          int family = aliases.family(operand);
          // A collective that waits for another has nowhere to go.
          ready = Math.max(ready, byCollective[family] ? p : written[family] + 1);
        }
        for (var result : op.results()) {
          if (aliases.id(result) >= 0) {
            ready = Math.max(ready, used[aliases.family(result)] + 1);
          }
        }
        windows[next] = new Window(ready, p, units.size());
        for (var result : op.results()) {
          if (aliases.id(result) >= 0) {
            close(windows, resultOf, aliases.family(result), position);
            resultOf[aliases.family(result)] = next;
            byCollective[aliases.family(result)] = true;
          }
        }
        next++;
      }
      boolean fenced = op.def().isFence();
      if (fenced) {
        fence = p + 1;
      }
      if (op.def().schema().mutates() || fenced) {
        op.operands().forEach(value -> mark(written, aliases.family(value), position));
        // Collectives touch no host memory. A copy of it ends in memory that nothing else has used.
        if (!op.def().has(OpTrait.HOST_COPY) && !op.def().has(OpTrait.HOST_COPY_END)) {
          closeAll(windows, open, next, position);
          open = collective ? next - 1 : next;
        }
      }
      unit.forEach(
          index -> {
            var own = graph.ops().get(index);
            own.results().forEach(value -> mark(written, aliases.family(value), position));
            own.operands().forEach(value -> mark(used, aliases.family(value), position));
            own.results().forEach(value -> mark(used, aliases.family(value), position));
          });
    }
    return new OverlapWindows(units, computeBefore, workBefore, ImmutableList.copyOf(windows));
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

  /** The time of a unit; 0 for a collective. */
  private static double micros(ImmutableIntArray unit, Analyses analyses, CostModel costs) {
    if (unit.length() > 1) {
      return costs.kernelMicros(analyses.fusion().bytesInMemory(unit));
    }
    var op = analyses.graph().ops().get(unit.get(0));
    return op.def().collective().isPresent() || Concatenation.needsNoCopy(op, unit.get(0), analyses)
        ? 0
        : costs.computeMicros(op);
  }

  /** {@return the ops that run as one step, by position} */
  public ImmutableList<ImmutableIntArray> units() {
    return units;
  }

  public Window window(int collective) {
    return windows.get(collective);
  }

  /** {@return the predicted compute between two positions, collectives not counted, in µs} */
  public double computeBetween(int from, int to) {
    return computeBefore[to] - computeBefore[from];
  }

  /** {@return the part of that compute beside which a collective could run, in µs} */
  public double workBetween(int from, int to) {
    return workBefore[to] - workBefore[from];
  }

  /** {@return the compute that could run beside a collective at best, in µs} */
  public double hideableMicros(int collective) {
    var window = windows.get(collective);
    return workBetween(window.earliest(), window.needed());
  }
}
