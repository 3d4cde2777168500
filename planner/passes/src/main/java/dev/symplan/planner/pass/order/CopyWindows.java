package dev.symplan.planner.pass.order;

import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.Timeline;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/**
 * The windows of a graph's copies between device and host memory: the units between the op that
 * begins a copy and the one that waits for it. In a tight window is none: the copy frees the most
 * memory, and compute waits for all of it.
 */
final class CopyWindows {
  private final PeakView view;
  private final CostModel costs;
  private final long most;
  private final OverlapWindows overlap;

  /** By unit, the bytes that are live there. */
  private final long[] live;

  /** By copy, the first unit after the wait for it. */
  private final Map<Value, Integer> done = new HashMap<>();

  /** By op that moves, the op before which it is to be. */
  private final Map<Integer, Integer> places = new HashMap<>();

  private CopyWindows(Analyses own, CostModel costs, long most) {
    this.view = new PeakView(own);
    this.costs = costs;
    this.most = most;
    this.overlap = own.overlap();
    this.live = view.liveByUnit();
  }

  /** {@return the graph with tight windows} */
  static Graph tight(Graph graph) {
    Map<Value, Op> ends = new HashMap<>();
    Map<Value, Op> begins = new HashMap<>();
    for (var op : graph.ops()) {
      if (op.def().has(OpTrait.HOST_COPY)) {
        begins.put(op.result(), op);
      } else if (op.def().has(OpTrait.HOST_COPY_END)) {
        ends.put(copy(op), op);
      }
    }
    if (begins.isEmpty()) {
      return graph;
    }
    var ops = new ArrayList<Op>();
    for (var op : graph.ops()) {
      if (op.def().has(OpTrait.HOST_COPY)) {
        if (isOut(op)) {
          ops.add(op);
          ops.add(ends.getOrDefault(op.result(), op));
        }
      } else if (!op.def().has(OpTrait.HOST_COPY_END)) {
        ops.add(op);
      } else if (!isOut(begins.getOrDefault(copy(op), op))) {
        ops.add(begins.getOrDefault(copy(op), op));
        ops.add(op);
      }
    }
    return graph.withOps(ops);
  }

  /** {@return the copy that an op waits for} */
  private static Value copy(Op end) {
    return end.operands().getLast();
  }

  /** Whether an op begins a copy to the host. */
  private static boolean isOut(Op op) {
    return op.def().has(OpTrait.HOST_COPY) && PeakView.isInHost(op.result());
  }

  /**
   * {@return the graph with windows that hide as much of each copy as can be}
   *
   * @param own of a graph with tight windows
   * @param most the bytes above which nothing more may be live
   */
  static Graph widen(Analyses own, CostModel costs, long most) {
    var windows = new CopyWindows(own, costs, most);
    windows.widen();
    return windows.reordered();
  }

  /** {@return by tensor that moves, the predicted time for which compute waits for it, in µs} */
  static Map<Value, Double> waits(Analyses own, CostModel costs) {
    var overlap = own.overlap();
    var timeline = new Timeline(costs, new double[0]);
    Map<Value, Value> sources = new HashMap<>();
    Map<Value, Double> waits = new HashMap<>();
    for (int unit = 0; unit < overlap.units().size(); unit++) {
      var op = own.graph().ops().get(overlap.units().get(unit).get(0));
      double before = timeline.micros();
      timeline.local(op, overlap.computeBetween(unit, unit + 1));
      if (isOut(op)) {
        sources.put(op.result(), op.operands().getFirst());
      } else if (op.def().has(OpTrait.HOST_COPY_END)) {
        var source = op.operands().getFirst();
        waits.merge(sources.getOrDefault(source, source), timeline.micros() - before, Double::sum);
      }
    }
    return waits;
  }

  private int unitOf(int op) {
    return view.own.fusion().unitOf(op);
  }

  private int opOf(int unit) {
    return overlap.units().get(unit).get(0);
  }

  private Op op(int unit) {
    return view.ops.get(opOf(unit));
  }

  private void widen() {
    Map<Value, Integer> begins = new HashMap<>();
    for (int i = 0; i < view.ops.size(); i++) {
      var op = view.ops.get(i);
      if (op.def().has(OpTrait.HOST_COPY)) {
        begins.put(op.result(), i);
      } else if (op.def().has(OpTrait.HOST_COPY_END)) {
        int begin = begins.getOrDefault(copy(op), i);
        if (isOut(view.ops.get(begin))) {
          waitLater(i, view.ops.get(begin));
        } else {
          beginEarlier(begin);
        }
      }
    }
  }

  /** Keeps a tensor until compute has hidden its copy. */
  private void waitLater(int end, Op out) {
    long bytes = view.bytes(out.operands().getFirst());
    double micros = costs.hostCopyMicros(out.result().tensor());
    double hidden = 0;
    int unit = unitOf(end) + 1;
    while (unit + 1 < live.length
        && hidden < micros
        && live[unit] + bytes <= most
        && !op(unit).def().isFence()
        && !op(unit).operands().contains(out.result())) {
      hidden += overlap.workBetween(unit, unit + 1);
      live[unit] += bytes;
      unit++;
    }
    done.put(out.result(), unit);
    if (hidden > 0) {
      places.put(end, opOf(unit));
    }
  }

  /** Makes a tensor again as early as compute hides its copy. */
  private void beginEarlier(int begin) {
    var back = view.ops.get(begin);
    long bytes = view.bytes(back.result());
    double micros = costs.hostCopyMicros(back.result().tensor());
    double hidden = 0;
    int unit = unitOf(begin);
    int earliest = done.getOrDefault(back.operands().getFirst(), unit);
    while (unit > earliest
        && hidden < micros
        && live[unit - 1] + bytes <= most
        && !op(unit - 1).def().isFence()) {
      unit--;
      hidden += overlap.workBetween(unit, unit + 1);
      live[unit] += bytes;
    }
    if (hidden > 0) {
      places.put(begin, opOf(unit));
    }
  }

  private Graph reordered() {
    if (places.isEmpty()) {
      return view.own.graph();
    }
    ListMultimap<Integer, Op> moved = MultimapBuilder.hashKeys().arrayListValues().build();
    for (int i = 0; i < view.ops.size(); i++) {
      if (places.containsKey(i)) {
        moved.put(places.getOrDefault(i, i), view.ops.get(i));
      }
    }
    var ops = new ArrayList<Op>();
    for (int i = 0; i < view.ops.size(); i++) {
      ops.addAll(moved.get(i));
      if (!places.containsKey(i)) {
        ops.add(view.ops.get(i));
      }
    }
    return view.own.graph().withOps(ops);
  }
}
