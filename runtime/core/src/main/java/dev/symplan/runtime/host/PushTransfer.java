package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Region;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Workspace;
import java.lang.foreign.MemorySegment;
import java.util.stream.IntStream;

/**
 * One rank's part of an all_reduce through workspaces, as the GPU's kernel does it: what this rank
 * sends goes into the peers' workspaces at once, the halves take turns, and what was taken is
 * emptied. That all have sent, which packets tell on a GPU, is the only thing that ranks wait for.
 */
final class PushTransfer {

  /** What is done between two waits for all ranks' packets. */
  private record Phases(ImmutableList<Runnable> phases) {}

  private final Collectives shared;
  private final Collective collective;
  private final int rank;
  private final int self;
  private final int size;
  private final Region region;

  PushTransfer(Collectives shared, Collective collective, int rank) {
    this.shared = shared;
    this.collective = collective;
    this.rank = rank;
    this.self = collective.group().self();
    this.size = collective.group().members().length();
    this.region = collective.workspace().orElseThrow();
  }

  /**
   * {@return what carries it out}
   *
   * @param received waits until all ranks have sent what they have to
   */
  Runnable prepare(Runnable received) {
    var byHalf = ImmutableList.<ImmutableList<Phases>>builder();
    for (int half = 0; half < Workspace.HALVES; half++) {
      var tensors = ImmutableList.<Phases>builder();
      for (int tensor = 0; tensor < collective.operands().size(); tensor++) {
        if (collective.operands().get(tensor).type().numel() > 0) {
          tensors.add(phases(tensor, half));
        }
      }
      byHalf.add(tensors.build());
    }
    var halves = byHalf.build();
    var count = shared.pushes(rank, region);
    return () -> {
      for (int tensor = 0; tensor < halves.getFirst().size(); tensor++) {
        int half = count[0]++ % Workspace.HALVES;
        var phases = halves.get(half).get(tensor).phases();
        phases.getFirst().run();
        for (var phase : phases.subList(1, phases.size())) {
          received.run();
          phase.run();
        }
      }
    };
  }

  private Phases phases(int tensor, int half) {
    var operand = own(collective.operands().get(tensor));
    var result = own(collective.results().get(tensor));
    var dtype = collective.operands().get(tensor).type().dtype();
    var layout =
        Workspace.of(collective.spec(), collective.reduceOp(), dtype, operand.byteSize(), size)
            .orElseThrow();
    var reducer = new Reducer(collective.reduceOp().orElseThrow(), dtype);
    boolean sliced = layout.rounds() > 1;
    long slice = layout.packets() * Alignment.VECTOR;
    var mine = sliced ? slice(operand, self, slice) : operand;
    var reduced = sliced ? slice(result, self, slice) : result;
    var sources =
        IntStream.range(0, size)
            .mapToObj(
                peer -> peer == self ? mine : slot(layout, half, 0, self, peer, mine.byteSize()))
            .toList();
    Runnable send =
        () ->
            others()
                .forEach(
                    peer -> {
                      var part = sliced ? slice(operand, peer, slice) : operand;
                      slot(layout, half, 0, peer, self, part.byteSize()).copyFrom(part);
                    });
    Runnable reduce =
        () -> {
          reducer.reduce(sources, 0, mine.byteSize() / dtype.bytes(), ImmutableList.of(reduced), 0);
          others().forEach(peer -> sources.get(peer).fill(Workspace.EMPTY));
        };
    if (!sliced) {
      return new Phases(ImmutableList.of(send, reduce));
    }
    Runnable reduceAndSend =
        () -> {
          reduce.run();
          others()
              .forEach(
                  peer -> slot(layout, half, 1, peer, self, reduced.byteSize()).copyFrom(reduced));
        };
    Runnable collect =
        () ->
            others()
                .forEach(
                    peer -> {
                      var part = slice(result, peer, slice);
                      var got = slot(layout, half, 1, self, peer, part.byteSize());
                      part.copyFrom(got);
                      got.fill(Workspace.EMPTY);
                    });
    return new Phases(ImmutableList.of(send, reduceAndSend, collect));
  }

  private IntStream others() {
    return IntStream.range(0, size).filter(peer -> peer != self);
  }

  private MemorySegment own(TensorRef ref) {
    return shared.memory(rank).tensor(ref).memory();
  }

  /** The last slices may be short or empty. */
  private static MemorySegment slice(MemorySegment whole, int index, long bytes) {
    long from = Math.min(whole.byteSize(), index * bytes);
    return whole.asSlice(from, Math.min(bytes, whole.byteSize() - from));
  }

  private MemorySegment slot(
      Workspace layout, int half, int round, int receiver, int sender, long bytes) {
    long start = half * (region.bytes() / Workspace.HALVES) + layout.slot(round, receiver, sender);
    return shared
        .memory(collective.group().members().get(receiver))
        .symmetric(region.offset() + start, bytes);
  }
}
