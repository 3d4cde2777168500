package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.Timeline;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The windows of a graph's copies between device and host memory: the units between the op that
 * begins a copy and the one that waits for it. In a tight window is none: the copy frees the most
 * memory, and compute waits for all of it.
 */
public final class CopyWindows {
  private static final OpDef AWAIT = BuiltinOps.registry().get("symplan::await_copy");

  private final PeakView view;
  private final CostModel costs;
  private final long most;
  private final OverlapWindows overlap;

  /** By unit, the bytes that are live there. */
  private final long[] live;

  /** By storage in the host's memory, the first unit after the last wait for a copy to it. */
  private final Map<Integer, Integer> done = new HashMap<>();

  /** By op that moves, the op before which it is to be. */
  private final Map<Integer, Integer> places = new HashMap<>();

  private CopyWindows(Analyses own, CostModel costs, long most) {
    this.view = new PeakView(own);
    this.costs = costs;
    this.most = most;
    this.overlap = own.overlap();
    this.live = view.liveByUnit();
  }

  /** {@return the graph with tight windows} What nothing waits for is waited for at once. */
  static Graph tight(Graph graph) {
    var begins = begins(graph);
    if (begins.isEmpty()) {
      return graph;
    }
    var waited = waited(graph);
    var ops = new ArrayList<Op>();
    for (var op : graph.ops()) {
      if (op.def().has(OpTrait.HOST_COPY)) {
        if (isOut(op) || !waited.contains(op.result())) {
          ops.add(op);
          ops.add(end(op));
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

  /**
   * {@return the graph with windows for copies for which nothing waits yet, as far as these take no
   * more memory at the peak} The same graph if there are none.
   */
  public static Graph made(Analyses own, CostModel costs) {
    var begins = begins(own.graph()).keySet();
    if (waited(own.graph()).containsAll(begins)) {
      return own.graph();
    }
    var tight = own.of(tight(own.graph()));
    return widen(tight, costs, PeakReduction.peak(tight));
  }

  /** {@return by its result, each op that begins a copy} */
  private static Map<Value, Op> begins(Graph graph) {
    return graph.ops().stream()
        .filter(op -> op.def().has(OpTrait.HOST_COPY))
        .collect(Collectors.toMap(Op::result, op -> op));
  }

  private static Set<Value> waited(Graph graph) {
    return graph.ops().stream()
        .filter(op -> op.def().has(OpTrait.HOST_COPY_END))
        .map(CopyWindows::copy)
        .collect(Collectors.toSet());
  }

  /** {@return the op that waits for a copy} */
  private static Op end(Op begin) {
    return new Op(
        AWAIT,
        ImmutableList.of(new Arg.Ref(begin.operands().getFirst()), new Arg.Ref(begin.result())),
        ImmutableList.of(),
        begin.span(),
        Notes.NONE);
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

  /**
   * {@return by the id of a tensor that moves, as it was defined first, the predicted time for
   * which compute waits for it, in µs}
   */
  static Map<Integer, Double> waits(Analyses own, CostModel costs) {
    var view = new PeakView(own);
    var overlap = own.overlap();
    var timeline = new Timeline(costs, new double[0]);
    Map<Integer, Double> waits = new HashMap<>();
    for (int unit = 0; unit < overlap.units().size(); unit++) {
      var op = own.graph().ops().get(overlap.units().get(unit).get(0));
      double before = timeline.micros();
      timeline.local(op, overlap.computeBetween(unit, unit + 1));
      if (op.def().has(OpTrait.HOST_COPY_END)) {
        var host = op.operands().stream().filter(PeakView::isInHost).findFirst().orElseThrow();
        waits.merge(
            view.origin(view.aliases.of(host).value()).id(),
            timeline.micros() - before,
            Double::sum);
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
    int read = firstRead(out.result(), end);
    int unit = unitOf(end) + 1;
    while (unit + 1 < live.length
        && hidden < micros
        && live[unit] + bytes <= most
        && !op(unit).def().isFence()
        && opOf(unit + 1) <= read
        && !meets(op(unit), out)) {
      hidden += overlap.workBetween(unit, unit + 1);
      live[unit] += bytes;
      unit++;
    }
    done.put(view.aliases.id(out.result()), unit);
    if (hidden > 0) {
      places.put(end, opOf(unit));
    }
  }

  /** {@return the first op behind the wait for a copy that uses it, or a view of it} */
  private int firstRead(Value copy, int end) {
    int storage = view.aliases.id(copy);
    for (int i = end + 1; i < view.ops.size(); i++) {
      if (view.ops.get(i).operands().stream()
          .anyMatch(value -> view.aliases.id(value) == storage)) {
        return i;
      }
    }
    return view.ops.size();
  }

  /** Whether an op touches what a copy to the host writes, or writes what it reads. */
  private boolean meets(Op op, Op out) {
    int host = view.aliases.id(out.result());
    int source = view.aliases.id(out.operands().getFirst());
    return op.operands().stream().anyMatch(value -> view.aliases.id(value) == host)
        || op.written().stream().anyMatch(value -> view.aliases.id(value) == source);
  }

  /** Makes a tensor again as early as compute hides its copy. */
  private void beginEarlier(int begin) {
    var back = view.ops.get(begin);
    long bytes = view.bytes(back.result());
    double micros = costs.hostCopyMicros(back.result().tensor());
    double hidden = 0;
    int unit = unitOf(begin);
    var from = back.operands().getFirst();
    // An input is there from the start, and can be read at any time until it is written over.
    int earliest =
        done.getOrDefault(view.aliases.id(from), view.aliases.of(from).isInput() ? 0 : unit);
    while (unit > earliest
        && opOf(unit - 1) > view.maker(from)
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
