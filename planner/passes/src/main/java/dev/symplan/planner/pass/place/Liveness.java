package dev.symplan.planner.pass.place;

import com.google.common.primitives.Longs;
import dev.symplan.ir.Value;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.Setup;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.StreamKind;
import java.util.Arrays;

/**
 * The steps in which each storage of a rank holds data.
 *
 * <p>Storages that an unfinished collective reads or writes are in use until its join. Peers touch
 * a rank's memory only between the barriers of a collective that the rank itself takes part in, so
 * they need no more than that; with an epilogue, until that has run. Values that only pass from op
 * to op of a fused step have no storage.
 */
public final class Liveness {
  private final Realized graph;
  private final Aliases aliases;
  private final Fusion fusion;
  private final Schedule schedule;
  private final int[] first;
  private final int[] last;

  /** The start of the last step that uses a storage, and the end of the last one but it. */
  private final int[] lastUser;

  private final int[] lastByOthers;

  private Liveness(Realized graph, Schedule schedule) {
    this.graph = graph;
    this.fusion = graph.analyses().fusion();
    this.aliases = graph.aliases();
    this.schedule = schedule;
    int count = aliases.count();
    this.first = new int[count];
    this.last = new int[count];
    this.lastUser = new int[count];
    this.lastByOthers = new int[count];
    Arrays.fill(first, Integer.MAX_VALUE);
    Arrays.fill(last, -1);
    Arrays.fill(lastUser, -1);
    Arrays.fill(lastByOthers, -1);
  }

  static Liveness of(Realized graph, Schedule schedule) {
    var liveness = new Liveness(graph, schedule);
    liveness.collect();
    return liveness;
  }

  private void collect() {
    int end = schedule.steps().size();
    for (int storage = 0; storage < aliases.count(); storage++) {
      if (graph.isGiven(storage)) {
        touch(storage, -1, -1, graph.isPinned(storage) ? end : -1);
      }
    }
    int k = 0;
    var ops = graph.graph().ops();
    for (var part : ProgramGraph.allOf(graph.graph())) {
      if (part.firstOp() > 0) {
        // The caller may fill inputs when their graph is to begin, and what the setup made is
        // there.
        int border = schedule.stepOfOp().get(part.firstOp() - 1);
        graph
            .graph()
            .inputs()
            .subList(part.firstInput(), part.endInput())
            .forEach(input -> touch(aliases.id(input), border, -1, border));
      }
    }
    for (int i = 0; i < ops.size(); i++) {
      if (schedule.stepOfOp().get(i) < 0) {
        continue;
      }
      boolean collective =
          k < graph.collectives().size() && graph.collectives().get(k).index() == i;
      int from = schedule.stepOfOp().get(i);
      int to = collective ? schedule.endStep().get(k) : from;
      // An epilogue takes the place of what it gets, but not of what peers still read.
      int made = collective && schedule.streams().get(k) == StreamKind.COMPUTE ? from : to;
      k += collective ? 1 : 0;
      ops.get(i).operands().forEach(value -> touch(aliases.id(value), from, from, to));
      ops.get(i).results().forEach(value -> touch(aliases.id(value), from, from, made));
    }
    graph.graph().outputValues().forEach(value -> touch(aliases.id(value), -1, end, end));
    Setup.kept(graph.graph(), aliases).stream().forEach(storage -> touch(storage, -1, end, end));
    aliases.families().extend(last);
  }

  private void touch(int storage, int user, int from, int to) {
    if (storage < 0 || fusion.isPassing(storage)) {
      return;
    }
    first[storage] = Math.min(first[storage], from);
    if (to > last[storage]) {
      if (user != lastUser[storage]) {
        lastByOthers[storage] = last[storage];
      }
      last[storage] = to;
      lastUser[storage] = user;
    } else if (user != lastUser[storage]) {
      lastByOthers[storage] = Math.max(lastByOthers[storage], to);
    }
  }

  /** Whether a step is the last to use a storage, which nobody else uses from its start on. */
  public boolean diesIn(Value value, int step) {
    int storage = aliases.id(value);
    return !graph.isPinned(storage)
        && aliases.families().isAlone(storage)
        && lastUser[storage] == step
        && lastByOthers[storage] < step
        && last[storage] < schedule.steps().size();
  }

  /** {@return whether a storage lives at all: it is more than what a step passes on} */
  public boolean hasMemory(int storage) {
    return !fusion.isPassing(storage);
  }

  /** {@return the most bytes of the rank's own memory that are live at one step} */
  public long peakBytes(StorageLayout layout) {
    return Longs.max(liveBytes(layout));
  }

  /**
   * {@return the bytes of the rank's own memory that are live before the first step, at each step,
   * and after the last one}
   */
  long[] liveBytes(StorageLayout layout) {
    var from = first.clone();
    var to = last.clone();
    var bytes = new long[first.length];
    for (int storage = 0; storage < first.length; storage++) {
      int root = layout.root(storage);
      if (!fusion.isPassing(storage)) {
        long end = layout.offset(storage) + aliases.storage(storage).bytes();
        bytes[root] = Math.max(bytes[root], Alignment.roundUp(end));
        from[root] = Math.min(from[root], first[storage]);
        to[root] = Math.max(to[root], last[storage]);
      }
    }
    var change = new long[schedule.steps().size() + 3];
    for (int storage = 0; storage < first.length; storage++) {
      if (bytes[storage] > 0 && (layout.isSymmetric(storage) || graph.arena(storage).isPlanned())) {
        change[from[storage] + 1] += bytes[storage];
        change[to[storage] + 2] -= bytes[storage];
      }
    }
    Arrays.parallelPrefix(change, Long::sum);
    return change;
  }

  /** {@return the first step that uses a storage; -1 if it holds data from the start} */
  public int first(int storage) {
    return first[storage];
  }

  /**
   * {@return the last step that uses it; the number of steps where the caller or the next run does}
   */
  public int last(int storage) {
    return last[storage];
  }
}
