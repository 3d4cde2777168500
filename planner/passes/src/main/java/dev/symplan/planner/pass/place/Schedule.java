package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Ints;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.Timeline;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import dev.symplan.planner.pass.select.Realize;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.function.ToIntFunction;

/**
 * Orders a rank's work: local ops stay in the graph's order; a collective that compute can hide
 * starts just early enough for that, on a stream of its own, and is waited for where its result is
 * first read. Starting earlier still would only hold memory longer; so would waiting later, where
 * nothing else needs what it sent: then it is waited for when it should long be done.
 *
 * <p>Collectives start in the graph's order on every rank, so that no two ranks wait for each
 * other.
 *
 * @param micros the predicted time of all steps
 */
public record Schedule(
    ImmutableList<Step> steps,
    ImmutableList<StreamKind> streams,
    int[] stepOfOp,
    int[] startStep,
    int[] endStep,
    double micros) {

  public static Schedule of(
      Realize.Realized graph,
      Fusion fusion,
      ImmutableList<Variant> variants,
      CostModel costs,
      boolean overlap,
      ToIntFunction<String> groupSize) {
    var window =
        OverlapWindows.of(graph.graph(), graph.aliases(), graph.collectives(), fusion, costs);
    int count = variants.size();
    var streams = new StreamKind[count];
    var start = new int[count];
    var transfers = new double[count];
    int bound = 0;
    for (int k = 0; k < count; k++) {
      var collective = graph.collectives().get(k);
      var place = window.window(k);
      double transfer =
          costs.transferMicros(
              collective.kind(),
              variants.get(k),
              collective.bytes(),
              groupSize.applyAsInt(collective.group()));
      transfers[k] = transfer;
      int from = hoist(window, place, Math.max(bound, place.earliest()), transfer);
      double beside = window.computeBetween(from, place.needed());
      double exposed = costs.exposedMicros(variants.get(k), transfer, beside);
      boolean async =
          overlap
              && variants.get(k) != Variant.CUSTOM
              && exposed + costs.forkJoinMicros() < transfer;
      streams[k] =
          !async
              ? StreamKind.COMPUTE
              : variants.get(k).usesCopyEngines() ? StreamKind.COPY : StreamKind.COMM;
      start[k] = async ? from : place.given();
      bound = async ? from : place.given() + 1;
    }
    return emit(graph, window, variants, streams, start, new Timeline(costs, transfers));
  }

  /** The latest position, not after the given one, from which compute hides the whole transfer. */
  private static int hoist(
      OverlapWindows overlap, OverlapWindows.Window window, int earliest, double transfer) {
    int from = earliest;
    int to = window.given();
    while (from < to) {
      int middle = from + (to - from + 1) / 2;
      if (overlap.computeBetween(middle, window.needed()) < transfer) {
        to = middle - 1;
      } else {
        from = middle;
      }
    }
    return from;
  }

  private static Schedule emit(
      Realize.Realized graph,
      OverlapWindows overlap,
      ImmutableList<Variant> variants,
      StreamKind[] streams,
      int[] start,
      Timeline timeline) {
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
    var frees = freeing(graph, variants);
    var inFlight = new ArrayDeque<Integer>();
    var joined = new boolean[count];
    int step = 0;
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
          timeline.join(k, variants.get(k));
        }
      }
      for (int k : startsAt[p]) {
        int op = graph.collectives().get(k).index();
        stepOfOp[op] = step;
        startStep[k] = step;
        endStep[k] = step++;
        steps.add(new Step.Start(k));
        timeline.start(k, streams[k]);
        if (streams[k] != StreamKind.COMPUTE && frees[k]) {
          inFlight.add(k);
        }
      }
      if (p < overlap.units().size()) {
        var unit = overlap.units().get(p);
        int op = unit.get(0);
        timeline.compute(overlap.computeBetween(p, p + 1));
        if (unit.length() > 1) {
          int here = step++;
          unit.forEach(index -> stepOfOp[index] = here);
          steps.add(new Step.Fused(unit));
        } else if (Collective.of(graph.graph().ops().get(op), op).isEmpty()) {
          stepOfOp[op] = step++;
          steps.add(new Step.Compute(op));
        }
      }
    }
    return new Schedule(
        steps.build(),
        ImmutableList.copyOf(streams),
        stepOfOp,
        startStep,
        endStep,
        timeline.micros());
  }

  /** For each collective, whether memory that it reads is free when it is done. */
  private static boolean[] freeing(Realize.Realized graph, ImmutableList<Variant> variants) {
    var aliases = graph.aliases();
    var lastUse = new int[aliases.count()];
    for (int i = 0; i < graph.graph().ops().size(); i++) {
      int index = i;
      for (var value : graph.graph().ops().get(i).operands()) {
        if (aliases.id(value) >= 0) {
          lastUse[aliases.id(value)] = index;
        }
      }
    }
    var escapes = aliases.escaping();
    var frees = new boolean[variants.size()];
    for (int k = 0; k < frees.length; k++) {
      var collective = graph.collectives().get(k);
      for (var operand : collective.operands()) {
        int storage = aliases.id(operand);
        frees[k] |=
            lastUse[storage] == collective.index()
                && !escapes[storage]
                && !graph.pinned()[storage]
                && !variants.get(k).allowsInPlace(collective.kind());
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
