package dev.symplan.planner.verify;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Says whether peers can get into each other's way: runs all ranks with vector clocks, as race
 * detectors for threads do, and compares every access of a peer to a rank's symmetric memory with
 * all others to the same bytes. Two of which one writes must be ordered, by the order of a stream,
 * its events, or a barrier at which the ranks really meet.
 *
 * <p>What comes before and after the program uses all memory of its rank.
 */
final class PeerOracle {
  private static final int STREAMS = StreamKind.values().length;

  private record Access(
      int thread, int clock, int[] seen, long begin, long end, boolean write, int by, int k) {

    boolean before(Access other) {
      return other.seen[thread] >= clock;
    }
  }

  private sealed interface Action {}

  /** An op that runs, or may run, in the kernel of a collective; -1 for others. */
  private record Op(int op, int k) implements Action {}

  private record Body(int k) implements Action {}

  /** An op that some blocks run before others have done their part of the collective. */
  private record Early(int op, int k) implements Action {}

  private record Meet(String name, ImmutableIntArray members) implements Action {}

  private record Record(String event) implements Action {}

  private record Await(String event) implements Action {}

  private record All() implements Action {}

  private static final class Barrier {
    final List<Integer> came = new ArrayList<>();
    int @Nullable [] clock;
  }

  private final Plan plan;
  private final int[][] clocks;
  private final List<Deque<Action>> threads = new ArrayList<>();
  private final List<List<Access>> memory = new ArrayList<>();
  private final Map<String, Barrier> barriers = new HashMap<>();
  private final Map<String, int[]> events = new HashMap<>();

  private PeerOracle(Plan plan) {
    this.plan = plan;
    int count = plan.worldSize() * STREAMS;
    this.clocks = new int[count][count];
    for (int i = 0; i < count; i++) {
      threads.add(new ArrayDeque<>());
    }
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      memory.add(new ArrayList<>());
      actions(rank);
    }
  }

  /** {@return the failure that can happen between ranks, if any can} */
  static Optional<String> unsafe(Plan plan) {
    return new PeerOracle(plan).run();
  }

  private static int thread(int rank, StreamKind stream) {
    return rank * STREAMS + stream.ordinal();
  }

  private void actions(int rank) {
    var rankPlan = plan.forRank(rank);
    var compute = threads.get(thread(rank, StreamKind.COMPUTE));
    compute.add(new All());
    for (int s = 0; s < rankPlan.steps().size(); s++) {
      if (rankPlan.epilogueOf(s) >= 0) {
        // It came before the end of its collective.
        continue;
      }
      var step = rankPlan.steps().get(s);
      var behind =
          s + 1 < rankPlan.steps().size() && rankPlan.epilogueOf(s + 1) >= 0
              ? ops(rankPlan.steps().get(s + 1))
              : ImmutableIntArray.of();
      switch (step) {
        case Step.Compute _, Step.Fused _ -> ops(step).forEach(op -> compute(rank, op));
        case Step.Join(int k) -> compute.add(new Await("done " + rank + " " + k));
        case Step.Start(int k) -> {
          var collective = rankPlan.collectives().get(k);
          var makers =
              s > 0 && !collective.isAsync() && collective.spec().takesMakers()
                  ? ops(rankPlan.steps().get(s - 1))
                  : ImmutableIntArray.of();
          if (collective.isAsync()) {
            var side = threads.get(thread(rank, collective.stream()));
            compute.add(new Record("start " + rank + " " + k));
            side.add(new Await("start " + rank + " " + k));
            collective(rank, k, collective, makers, behind, side);
            side.add(new Record("done " + rank + " " + k));
          } else {
            collective(rank, k, collective, makers, behind, compute);
          }
        }
      }
    }
    compute.add(new All());
  }

  /** Copies between device and host memory run in a stream of their own. */
  private void compute(int rank, int index) {
    var op = plan.forRank(rank).graph().ops().get(index);
    var compute = threads.get(thread(rank, StreamKind.COMPUTE));
    if (op.def().has(OpTrait.HOST_COPY)) {
      var side = threads.get(thread(rank, StreamKind.COPY));
      compute.add(new Record("copy " + rank + " " + index));
      side.add(new Await("copy " + rank + " " + index));
      side.add(new Op(index, -1));
      side.add(new Record("copied " + rank + " " + op.result().id()));
      return;
    }
    if (op.def().has(OpTrait.HOST_COPY_END)) {
      compute.add(new Await("copied " + rank + " " + op.operands().getLast().id()));
    }
    compute.add(new Op(index, -1));
  }

  private static ImmutableIntArray ops(Step step) {
    return switch (step) {
      case Step.Compute(int op) -> ImmutableIntArray.of(op);
      case Step.Fused(var ops) -> ops;
      case Step.Start _, Step.Join _ -> ImmutableIntArray.of();
    };
  }

  private void collective(
      int rank,
      int k,
      CollectivePlan collective,
      ImmutableIntArray makers,
      ImmutableIntArray behind,
      Deque<Action> thread) {
    var members = members(rank, collective);
    // These two meet for themselves, whatever the plan says.
    boolean meets =
        collective.variant() == Variant.NCCL_SYMM || collective.variant() == Variant.CUSTOM;
    boolean plain = collective.variant() == Variant.NCCL || collective.variant() == Variant.LOCAL;
    if (meets || (collective.startBarrier() && !plain)) {
      thread.add(new Meet("start " + k + members, members));
    }
    makers.forEach(op -> thread.add(new Op(op, k)));
    thread.add(new Body(k));
    boolean after = collective.variant() == Variant.TWO_SHOT;
    behind.forEach(op -> thread.add(after ? new Early(op, k) : new Op(op, -1)));
    if (meets || (collective.endBarrier() && !plain)) {
      thread.add(new Meet("end " + k + members, members));
    }
    if (after) {
      behind.forEach(op -> thread.add(new Op(op, -1)));
    }
  }

  private ImmutableIntArray members(int rank, CollectivePlan collective) {
    var group = plan.group(collective.group());
    return group.members().get(group.partOf(rank).orElseThrow());
  }

  private Optional<String> run() {
    boolean moved = true;
    while (moved) {
      moved = false;
      for (int t = 0; t < threads.size(); t++) {
        while (!threads.get(t).isEmpty() && act(t, threads.get(t).getFirst())) {
          threads.get(t).removeFirst();
          moved = true;
        }
      }
    }
    if (threads.stream().anyMatch(thread -> !thread.isEmpty())) {
      return Optional.of("the ranks wait for ever");
    }
    for (int rank = 0; rank < memory.size(); rank++) {
      var race = race(rank);
      if (race.isPresent()) {
        return race;
      }
    }
    return Optional.empty();
  }

  private boolean act(int thread, Action action) {
    int rank = thread / STREAMS;
    switch (action) {
      case Op(int op, int k) -> {
        clocks[thread][thread]++;
        local(thread, rank, op, k);
      }
      case Early(int op, int k) -> {
        clocks[thread][thread]++;
        early(thread, rank, op, k);
      }
      case Body(int k) -> body(thread, rank, k);
      case All() -> {
        clocks[thread][thread]++;
        note(thread, rank, 0, Long.MAX_VALUE, true, -1);
      }
      case Record(var event) -> events.put(event, clocks[thread].clone());
      case Await(var event) -> {
        if (!events.containsKey(event)) {
          return false;
        }
        join(thread, events.getOrDefault(event, clocks[thread]));
      }
      case Meet(var name, var members) -> {
        return meet(thread, barriers.computeIfAbsent(name, key -> new Barrier()), members.length());
      }
    }
    return true;
  }

  private boolean meet(int thread, Barrier barrier, int size) {
    if (!barrier.came.contains(thread)) {
      barrier.came.add(thread);
      if (barrier.came.size() == size) {
        var all = new int[clocks.length];
        barrier.came.forEach(t -> Arrays.setAll(all, i -> Math.max(all[i], clocks[t][i])));
        barrier.clock = all;
      }
    }
    if (barrier.clock == null) {
      return false;
    }
    join(thread, barrier.clock);
    return true;
  }

  private void join(int thread, int[] other) {
    Arrays.setAll(clocks[thread], i -> Math.max(clocks[thread][i], other[i]));
  }

  private void body(int thread, int rank, int k) {
    var collective = plan.forRank(rank).collectives().get(k);
    clocks[thread][thread]++;
    local(thread, rank, collective.op(), k);
    boolean reads = collective.spec().needsSymmetricOperand();
    boolean writes = collective.spec().needsSymmetricResult();
    if (!reads && !writes) {
      return;
    }
    members(rank, collective)
        .forEach(
            peer -> {
              if (peer != rank) {
                var other = plan.forRank(peer);
                if (k >= other.collectives().size()) {
                  throw new PlannedRun.Unsafe("peers that have no such collective");
                }
                var theirs = other.collectives().get(k);
                if (reads) {
                  theirs.operands().forEach(id -> note(thread, peer, other, id, false, k));
                }
                if (writes) {
                  theirs.results().forEach(id -> note(thread, peer, other, id, true, k));
                }
              }
            });
  }

  /** Its writes, but for the rows that blocks of the same number read and store. */
  private void early(int thread, int rank, int op, int k) {
    var own = plan.forRank(rank);
    var collective = own.collectives().get(k);
    var rows =
        Stream.concat(collective.operands().stream(), collective.results().stream())
            .map(id -> own.placement(own.graph().values().get(id)))
            .toList();
    own.graph().ops().get(op).results().stream()
        .filter(value -> value.isTensor() && !rows.contains(own.placement(value)))
        .forEach(value -> note(thread, rank, own, value, true, -1));
  }

  private void local(int thread, int rank, int op, int k) {
    var rankPlan = plan.forRank(rank);
    var does = rankPlan.graph().ops().get(op);
    does.operands().forEach(value -> note(thread, rank, rankPlan, value, false, k));
    var views = new ArrayList<Value>();
    var inferred = does.infer();
    for (int i = 0; i < inferred.size(); i++) {
      if (inferred.get(i).view().isPresent()) {
        views.add(does.results().get(i));
      }
    }
    does.results().stream()
        .filter(value -> !views.contains(value))
        .forEach(value -> note(thread, rank, rankPlan, value, true, k));
    var params = does.def().schema().params();
    for (int i = 0; i < params.size(); i++) {
      if (params.get(i).alias().write()) {
        does.args().get(i).operands().forEach(v -> note(thread, rank, rankPlan, v, true, k));
      }
    }
  }

  private void note(int thread, int rank, RankPlan own, int id, boolean write, int k) {
    note(thread, rank, own, own.graph().values().get(id), write, k);
  }

  private void note(int thread, int rank, RankPlan own, Value value, boolean write, int k) {
    if (value.isTensor()
        && own.placement(value).exists()
        && own.buffer(value).arena() == ArenaKind.SYMMETRIC) {
      var placement = own.placement(value);
      long begin = own.buffer(value).offset() + placement.offset() + plan.shift(rank, placement);
      long bytes = value.tensor().storageBytes();
      // Of a piece between others, each row by itself.
      long row = placement.isInRows() ? placement.stride() : bytes;
      for (long done = 0; done < bytes; done += row) {
        long from = begin + (placement.isInRows() ? done / row * placement.pitch() : 0);
        note(thread, rank, from, from + row, write, k);
      }
    }
  }

  private void note(int thread, int rank, long begin, long end, boolean write, int k) {
    memory
        .get(rank)
        .add(
            new Access(
                thread,
                clocks[thread][thread],
                clocks[thread].clone(),
                begin,
                end,
                write,
                thread / STREAMS,
                k));
  }

  private Optional<String> race(int rank) {
    var all = memory.get(rank);
    for (var a : all) {
      if (a.by() == rank) {
        continue;
      }
      for (var b : all) {
        if ((a.write() || b.write())
            && a.begin() < b.end()
            && b.begin() < a.end()
            && a.k() != b.k()
            && !a.before(b)
            && !b.before(a)) {
          return Optional.of(
              "rank %s, in collective %s, and rank %s may be at %s of rank %s at once"
                  .formatted(a.by(), a.k(), b.by(), Math.max(a.begin(), b.begin()), rank));
        }
      }
    }
    return Optional.empty();
  }
}
