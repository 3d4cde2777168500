package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.Realized;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Merges storages of all rank classes, which do in place what all can. */
final class Merging {
  /** Of how many ops that join pieces each is tried by itself; more only all together. */
  private static final int TRIED = 16;

  /**
   * The merges, by rank class.
   *
   * @param inPlace by collective, whether its results lie in the memory of its operands
   */
  record Merged(ImmutableList<RankMerging> classes, ImmutableList<Boolean> inPlace) {
    private boolean takesMoreThan(Merged other) {
      return IntStream.range(0, classes.size())
          .anyMatch(c -> classes.get(c).peakBytes() > other.classes.get(c).peakBytes());
    }
  }

  private final PassContext context;
  private final ImmutableList<Realized> graphs;
  private final ImmutableList<Schedule> schedules;
  private final ImmutableList<Liveness> lives;

  /** Whether there is one rank class: a symmetric tensor may move only if it does on all ranks. */
  private final boolean alike;

  Merging(GraphState state, PassContext context) {
    this.context = context;
    this.graphs = state.get(RealizeOperands.REALIZED);
    this.schedules = state.get(ScheduleSteps.SCHEDULES);
    this.lives =
        IntStream.range(0, graphs.size())
            .mapToObj(c -> Liveness.of(graphs.get(c), schedules.get(c)))
            .collect(toImmutableList());
    this.alike = graphs.size() == 1;
  }

  /** {@return the merges in which no collective writes rows between those of others} */
  Merged without() {
    return merged(ImmutableList.of(), ImmutableList.of());
  }

  /**
   * {@return the merges in which collectives write their results where later ops join them, as far
   * as that takes no more memory: what is joined is in use from its first piece on}
   */
  Merged withRows(Merged without) {
    var mode = context.options().rewrites().layouts();
    if (mode == Mode.OFF) {
      return without;
    }
    var pieces =
        IntStream.range(0, graphs.size())
            .mapToObj(
                c -> new RowPieces(graphs.get(c), schedules.get(c), lives.get(c), context, alike))
            .collect(toImmutableList());
    var ops = pieces.stream().map(RowPieces::ops).collect(toImmutableList());
    if (ops.stream().allMatch(List::isEmpty)) {
      return without;
    }
    var all = merged(pieces, ops);
    if (mode == Mode.ON || !all.takesMoreThan(without)) {
      return all;
    }
    return ops.stream().mapToInt(List::size).sum() <= TRIED ? some(without, pieces, ops) : without;
  }

  /** As many as do not take more memory, one after the other. */
  private Merged some(
      Merged without, ImmutableList<RowPieces> pieces, ImmutableList<ImmutableList<Integer>> ops) {
    var kept = new ArrayList<List<Integer>>();
    ops.forEach(_ -> kept.add(new ArrayList<>()));
    var best = without;
    for (int c = 0; c < ops.size(); c++) {
      for (int op : ops.get(c)) {
        kept.get(c).add(op);
        var tried = merged(pieces, kept);
        if (tried.takesMoreThan(without)) {
          kept.get(c).removeLast();
        } else {
          best = tried;
        }
      }
    }
    return best;
  }

  private Merged merged(ImmutableList<RowPieces> pieces, List<? extends List<Integer>> ops) {
    var classes =
        IntStream.range(0, graphs.size())
            .mapToObj(c -> new RankMerging(graphs.get(c), schedules.get(c), lives.get(c)))
            .collect(toImmutableList());
    classes.forEach(own -> own.mergeConcatenations(alike));
    for (int c = 0; c < pieces.size(); c++) {
      classes.get(c).mergeRows(pieces.get(c), ops.get(c));
    }
    var inPlace = ImmutableList.<Boolean>builder();
    for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
      int collective = k;
      boolean all = Iterables.all(classes, own -> own.canBeInPlace(collective));
      if (all) {
        classes.forEach(own -> own.mergeCollective(collective));
      }
      inPlace.add(all);
    }
    classes.forEach(own -> own.mergeShares(context));
    classes.forEach(own -> own.mergeLocal(alike));
    return new Merged(classes, inPlace.build());
  }
}
