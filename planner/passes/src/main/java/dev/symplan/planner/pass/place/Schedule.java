package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.Ints;
import dev.symplan.planner.cost.Timeline;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import dev.symplan.planner.pass.analysis.Prefetch;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Optional;

/**
 * Orders a rank's work: local ops stay in the graph's order; a collective that compute can hide
 * starts just early enough for that, on a stream of its own, and is waited for where its result is
 * first read. An earlier start would only hold memory longer. So would a later wait if its operand
 * has no other reader: then the wait is where the collective should be done long ago.
 *
 * <p>Collectives start in the graph's order on every rank, so that no two ranks wait for each
 * other.
 *
 * <p>A collective with an {@link Epilogue} starts right before the step that runs in its kernel.
 *
 * @param streams by collective
 * @param stepOfOp the step that each op runs in; -1 for views and waits
 * @param startStep by collective, the step that starts it
 * @param endStep by collective, the step after which it is done: its epilogue, if it has one
 * @param micros the predicted time of all steps
 */
public record Schedule(
    ImmutableList<Step> steps,
    ImmutableList<StreamKind> streams,
    ImmutableIntArray stepOfOp,
    ImmutableIntArray startStep,
    ImmutableIntArray endStep,
    double micros) {

  /**
   * @param apart collectives that run alone even though compute could hide them
   * @param epilogues by collective
   */
  static Schedule of(
      Realized graph,
      ImmutableSet<Integer> apart,
      ImmutableList<Optional<Epilogue>> epilogues,
      PassContext context) {
    var costs = context.costs();
    var window = graph.analyses().overlap();
    var variants = graph.variants();
    int count = variants.size();
    var streams = new StreamKind[count];
    var start = new int[count];
    var transfers = new double[count];
    var added = new double[window.units().size()];
    Arrays.fill(added, Double.NaN);
    var ahead = new Prefetch(context.options().prefetch());
    int bound = 0;
    for (int k = 0; k < count; k++) {
      var collective = graph.collectives().get(k);
      var place = window.window(k);
      double transfer =
          costs.transferMicros(
              collective.kind(),
              variants.get(k),
              collective.bytes(),
              collective.operands().size(),
              context.reach(collective.group()));
      transfers[k] = transfer;
      if (epilogues.get(k).map(Epilogue::isFused).orElse(false)) {
        // Tensors that the epilogue waits for are joined before, so that nothing comes between.
        streams[k] = StreamKind.COMPUTE;
        start[k] = place.given() + 1;
        bound = start[k] + 1;
        added[start[k]] =
            graph.analyses().epilogue(k).orElseThrow().addedMicros(costs, graph.spec(k));
        continue;
      }
      int earliest = Math.max(Math.max(bound, place.earliest()), ahead.earliest(place));
      int from = hoist(window, place, earliest, transfer);
      double beside = window.workBetween(from, place.needed());
      double exposed = costs.exposedMicros(variants.get(k), transfer, beside);
      double alone = costs.behindMicros(transfer, graph.analyses().makerMicros(k, variants.get(k)));
      boolean async =
          context.options().overlap()
              && variants.get(k) != Variant.CUSTOM
              && !apart.contains(k)
              && exposed + costs.forkJoinMicros() < alone;
      streams[k] =
          !async
              ? StreamKind.COMPUTE
              : variants.get(k).usesCopyEngines() ? StreamKind.COPY : StreamKind.COMM;
      start[k] = async ? from : place.given();
      bound = async ? from : place.given() + 1;
      if (async) {
        ahead.start(from, place);
      }
    }
    return emit(graph, streams, start, added, new Timeline(costs, transfers));
  }

  /** The latest position, not after the given one, from which compute hides the whole transfer. */
  private static int hoist(
      OverlapWindows overlap, OverlapWindows.Window window, int earliest, double transfer) {
    int from = earliest;
    int to = window.given();
    while (from < to) {
      int middle = from + (to - from + 1) / 2;
      if (overlap.workBetween(middle, window.needed()) < transfer) {
        to = middle - 1;
      } else {
        from = middle;
      }
    }
    return from;
  }

  /**
   * @param added by position, what a step in the kernel of the collective before it adds to its
   *     time; NaN for other steps
   */
  private static Schedule emit(
      Realized graph, StreamKind[] streams, int[] start, double[] added, Timeline timeline) {
    var overlap = graph.analyses().overlap();
    int count = start.length;
    var steps = ImmutableList.<Step>builder();
    var stepOfOp = new int[graph.graph().ops().size()];
    Arrays.fill(stepOfOp, -1);
    var startStep = new int[count];
    var endStep = new int[count];
    var startsAt = byPosition(start, overlap.units().size());
    var needed = new int[count];
    for (int k = 0; k < count; k++) {
      needed[k] = overlap.window(k).needed();
    }
    var joinsAt = byPosition(needed, overlap.units().size());
    var frees = freeing(graph);
    var inFlight = new ArrayDeque<Integer>();
    var joined = new boolean[count];
    int step = 0;
    int afterUnit = 0;
    for (int p = 0; p <= overlap.units().size(); p++) {
      var joins = new ArrayList<Integer>();
      while (!inFlight.isEmpty()
          && (joined[inFlight.peek()] || timeline.isLongDone(inFlight.peek()))) {
        joins.add(inFlight.remove());
      }
      joins.addAll(Ints.asList(joinsAt[p]));
      for (int k : joins) {
        if (streams[k] != StreamKind.COMPUTE && !joined[k]) {
          joined[k] = true;
          endStep[k] = step++;
          steps.add(new Step.Join(k));
          timeline.join(k, graph.variants().get(k));
        }
      }
      for (int k : startsAt[p]) {
        int op = graph.collectives().get(k).index();
        stepOfOp[op] = step;
        startStep[k] = step;
        boolean behind = step == afterUnit;
        steps.add(new Step.Start(k));
        timeline.start(
            k, streams[k], behind ? graph.analyses().makerMicros(k, graph.variants().get(k)) : 0);
        endStep[k] = step++;
        if (streams[k] != StreamKind.COMPUTE && frees[k]) {
          inFlight.add(k);
        }
      }
      if (p < overlap.units().size()) {
        var unit = overlap.units().get(p);
        int op = unit.get(0);
        boolean behind = !Double.isNaN(added[p]);
        timeline.local(
            graph.graph().ops().get(op), behind ? added[p] : overlap.computeBetween(p, p + 1));
        if (behind) {
          endStep[startsAt[p][startsAt[p].length - 1]] = step;
        }
        if (unit.length() > 1) {
          int here = step++;
          unit.forEach(index -> stepOfOp[index] = here);
          steps.add(new Step.Fused(unit));
        } else if (graph.graph().ops().get(op).def().collective().isEmpty()) {
          stepOfOp[op] = step++;
          steps.add(new Step.Compute(op));
        }
        afterUnit = step;
      }
    }
    return new Schedule(
        steps.build(),
        ImmutableList.copyOf(streams),
        ImmutableIntArray.copyOf(stepOfOp),
        ImmutableIntArray.copyOf(startStep),
        ImmutableIntArray.copyOf(endStep),
        timeline.micros());
  }

  /** For each collective, whether memory that it reads is free when it is done. */
  private static boolean[] freeing(Realized graph) {
    var uses = graph.analyses().uses();
    var frees = new boolean[graph.variants().size()];
    for (int k = 0; k < frees.length; k++) {
      var collective = graph.collectives().get(k);
      for (var operand : collective.operands()) {
        int storage = graph.aliases().id(operand);
        frees[k] |=
            uses.lastOp(storage) == collective.index()
                && !uses.escapes(storage)
                && !graph.isPinned(storage)
                && !graph.spec(k).allowsInPlace();
      }
    }
    return frees;
  }

  /** The collectives at each position, in order. */
  private static int[][] byPosition(int[] positions, int last) {
    var sizes = new int[last + 1];
    for (int position : positions) {
      sizes[position]++;
    }
    var at = new int[last + 1][];
    for (int p = 0; p <= last; p++) {
      at[p] = new int[sizes[p]];
    }
    Arrays.fill(sizes, 0);
    for (int k = 0; k < positions.length; k++) {
      at[positions[k]][sizes[positions[k]]++] = k;
    }
    return at;
  }
}
