package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfer.Barrier;
import dev.symplan.codegen.Transfer.Clear;
import dev.symplan.codegen.Transfer.Copy;
import dev.symplan.codegen.Transfer.Empty;
import dev.symplan.codegen.Transfer.Endpoint;
import dev.symplan.codegen.Transfer.InTensor;
import dev.symplan.codegen.Transfer.Receive;
import dev.symplan.codegen.Transfer.Reduce;
import dev.symplan.codegen.Transfer.Rows;
import dev.symplan.codegen.Transfer.Slot;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Workspace;
import dev.symplan.planner.plan.ArenaKind;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * One rank's transfers for a tensor of a collective, with all addresses resolved: between the
 * ranks' symmetric arenas at the planned offsets, as on GPUs.
 *
 * <p>Only {@link Variant#NCCL} goes through memory of the runtime's own, and so asks nothing of the
 * plan. Everywhere else, memory of a peer that is not symmetric is out of reach, as it is on a GPU.
 */
final class TransferTasks {
  private final Collectives shared;
  private final Collective collective;
  private final int rank;
  private final int tensor;
  private final int half;

  /**
   * @param half of the workspace, if the variant goes through one
   */
  TransferTasks(Collectives shared, Collective collective, int rank, int tensor, int half) {
    this.shared = shared;
    this.collective = collective;
    this.rank = rank;
    this.tensor = tensor;
    this.half = half;
  }

  /**
   * {@return the action that carries a transfer out}
   *
   * @param meeting waits until all ranks of the group are here. On a GPU, packets say that they are
   *     there; here it is the only thing that ranks wait for
   */
  Runnable of(Transfer transfer, Runnable meeting) {
    return switch (transfer) {
      case Barrier _, Receive _ -> meeting;
      case Copy(var from, var to, long bytes) -> copy(from, to, bytes);
      case Clear(var to, long bytes) -> clear(to, bytes);
      case Reduce(var from, var to, long bytes) -> reduce(from, to, bytes);
      case Empty(var slots) -> {
        long bytes = collective.layout(tensor).slotBytes();
        var places = slots.stream().map(slot -> memory(slot, bytes)).toList();
        yield () -> places.forEach(end -> end.fill(Workspace.EMPTY));
      }
    };
  }

  private Runnable copy(Endpoint from, List<Endpoint> to, long bytes) {
    if (bytes == 0) {
      return () -> {};
    }
    var source = place(from, bytes, 1);
    var targets = places(to, bytes, 1);
    return () ->
        targets.forEach(
            target ->
                inPieces(
                    bytes,
                    ImmutableList.of(source, target),
                    (index, count) ->
                        target.piece(index, count).copyFrom(source.piece(index, count))));
  }

  private Runnable clear(Endpoint to, long bytes) {
    var target = place(to, bytes, 1);
    return () ->
        inPieces(
            bytes,
            ImmutableList.of(target),
            (index, count) -> target.piece(index, count).fill((byte) 0));
  }

  private Runnable reduce(List<Endpoint> from, List<Endpoint> to, long bytes) {
    var dtype = collective.operands().get(tensor).type().dtype();
    var made = collective.results().get(tensor).type().dtype();
    var reducer = new Reducer(collective.reduceOp().orElseThrow(), dtype, made);
    if (bytes == 0) {
      return () -> {};
    }
    long elements = bytes / dtype.bytes();
    var sources = places(from, elements, dtype.bytes());
    var targets = places(to, elements, made.bytes());
    var all = ImmutableList.<Place>builder().addAll(sources).addAll(targets).build();
    return () ->
        inPieces(
            elements,
            all,
            (index, count) ->
                reducer.reduce(
                    pieces(sources, index, count), count, pieces(targets, index, count)));
  }

  /**
   * Memory from the first of some elements to the last, and how they lie in it.
   *
   * @param width the bytes of an element, of which a row has whole ones
   */
  private record Place(MemorySegment memory, Rows rows, int width) {
    /** {@return elements of one row} */
    MemorySegment piece(long index, long count) {
      return memory.asSlice(rows.offset(index * width), count * width);
    }

    /** {@return how many elements of a row there are from one on} */
    long left(long index) {
      return rows.left(index * width) / width;
    }
  }

  private static ImmutableList<MemorySegment> pieces(List<Place> places, long index, long count) {
    return places.stream()
        .map(place -> place.piece(index, count))
        .collect(ImmutableList.toImmutableList());
  }

  /** The work on some of the elements, which lie side by side in each place. */
  @FunctionalInterface
  private interface Work {
    void run(long index, long count);
  }

  private static void inPieces(long elements, ImmutableList<Place> places, Work work) {
    long index = 0;
    while (index < elements) {
      long count = elements - index;
      for (var place : places) {
        count = Math.min(count, place.left(index));
      }
      work.run(index, count);
      index += count;
    }
  }

  private ImmutableList<Place> places(List<Endpoint> ends, long elements, int width) {
    return ends.stream()
        .map(end -> place(end, elements, width))
        .collect(ImmutableList.toImmutableList());
  }

  private Place place(Endpoint end, long elements, int width) {
    var rows = end instanceof InTensor part ? part.rows() : Rows.ONE;
    return new Place(memory(end, rows.extent(elements * width)), rows, width);
  }

  private MemorySegment memory(Endpoint end, long bytes) {
    return switch (end) {
      case InTensor(var role, int member, long offset, var _) -> {
        var peer = shared.transfers().at(member, collective);
        var whole =
            switch (role) {
              case OPERAND ->
                  tensor(
                      member,
                      collective.operands().get(tensor),
                      peer.operands().get(tensor).type());
              case RESULT ->
                  tensor(
                      member, collective.results().get(tensor), peer.results().get(tensor).type());
              case LIBRARY -> shared.staged(rankOf(member), peer, tensor);
            };
        yield whole.asSlice(offset, bytes);
      }
      case Slot(int round, int receiver, int sender) -> {
        var region = collective.workspace().orElseThrow();
        long start =
            half * (region.bytes() / Workspace.HALVES)
                + collective.layout(tensor).slot(round, receiver, sender);
        yield shared.memory(rankOf(receiver)).symmetric(region.offset() + start, bytes);
      }
    };
  }

  private int rankOf(int member) {
    return collective.group().members().get(member);
  }

  /** A peer's symmetric memory at the offset that this rank knows: it is the same there. */
  private MemorySegment tensor(int member, TensorRef ref, TensorType type) {
    int owner = rankOf(member);
    if (owner != rank && ref.arena() != ArenaKind.SYMMETRIC) {
      throw new IllegalStateException(
          "rank %s cannot reach %s of rank %s: it is not in symmetric memory"
              .formatted(rank, ref, owner));
    }
    return shared
        .memory(owner)
        .tensor(new TensorRef(ref.arena(), ref.index(), ref.offset(), type))
        .memory();
  }
}
