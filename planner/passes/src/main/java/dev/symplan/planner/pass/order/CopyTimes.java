package dev.symplan.planner.pass.order;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;

/**
 * The predicted times of copies between device and host memory, in µs: those of the best windows.
 * No copy is under way at the peak, where another graph of the program begins, or at an op that may
 * do anything.
 */
final class CopyTimes {
  /** A copy that is in the graph already, by the units between which it is under way. */
  private record UnderWay(int from, int to, double micros) {}

  private final PeakView view;
  private final CostModel costs;
  private final OverlapWindows overlap;

  /** By unit, whether no copy may be under way there. */
  private final BitSet full = new BitSet();

  private final List<UnderWay> underWay = new ArrayList<>();

  CopyTimes(PeakView view, CostModel costs) {
    this.view = view;
    this.costs = costs;
    this.overlap = view.own.overlap();
    // A graph without ops has no unit.
    if (view.units.count() > 0) {
      view.units
          .ops(view.profile.at())
          .filter(view.aliases::runs)
          .forEach(op -> full.set(unitOf(op)));
    }
    var begins = new HashMap<Value, Integer>();
    for (int i = 0; i < view.ops.size(); i++) {
      var op = view.ops.get(i);
      if (op.def().isFence()) {
        full.set(unitOf(i));
      }
      if (op.def().has(OpTrait.HOST_COPY)) {
        begins.put(op.result(), unitOf(i));
      } else if (op.def().has(OpTrait.HOST_COPY_END)) {
        var copy = op.operands().getLast();
        underWay.add(new UnderWay(begins.getOrDefault(copy, 0), unitOf(i), copy(copy.tensor())));
      }
    }
  }

  /** {@return the position of the step that runs an op} */
  int unitOf(int op) {
    return view.own.fusion().unitOf(op);
  }

  /** {@return the first op of a step; the number of ops after the last one} */
  int opOf(int unit) {
    return unit == overlap.units().size() ? view.ops.size() : overlap.units().get(unit).get(0);
  }

  /** {@return the first op of the step after that of an op} */
  int after(int op) {
    return opOf(unitOf(op) + 1);
  }

  /** {@return the time of a copy by itself} */
  double copy(TensorType copy) {
    return costs.hostCopyMicros(copy);
  }

  /**
   * {@return the time that a copy to the host adds}
   *
   * @param begin the first op after those that make or use the source
   */
  double out(TensorType host, int begin) {
    int unit = begin == view.ops.size() ? overlap.units().size() : unitOf(begin);
    int gone = full.nextSetBit(unit);
    return added(host, unit, gone < 0 ? overlap.units().size() : gone);
  }

  /**
   * {@return the time that a copy from the host adds}
   *
   * @param needed the op that reads it
   * @param from the first op beside which it may be under way
   */
  double in(TensorType copy, int needed, int from) {
    int unit = unitOf(needed);
    int fenced = unit == 0 ? 0 : full.previousSetBit(unit - 1) + 1;
    while (opOf(fenced) < from && fenced < unit) {
      fenced++;
    }
    return added(copy, fenced, unit);
  }

  private double added(TensorType copy, int from, int to) {
    return costs.forkJoinMicros()
        + costs.exposedMicros(Variant.COPY_ENGINE, copy(copy), hidden(from, to));
  }

  /** The compute between two units that other copies leave, in µs. */
  private double hidden(int from, int to) {
    double others =
        underWay.stream()
            .filter(copy -> copy.from() < to && copy.to() > from)
            .mapToDouble(UnderWay::micros)
            .sum();
    return Math.max(0, overlap.workBetween(from, to) - others);
  }
}
