package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.ArenaKind;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;

/**
 * One rank's part of a collective: each variant moves the data as its GPU twin does, between the
 * ranks' symmetric arenas at the planned offsets.
 *
 * <p>Only {@link Variant#NCCL} goes through memory of the runtime's own, and so asks nothing of the
 * plan. Everywhere else, memory of a peer that is not symmetric is out of reach, as it is on a GPU.
 */
final class Transfer {

  /** What the own kernels move at once, in bytes; slices begin at multiples of it. */
  private static final long VECTOR = 16;

  /** Copies bytes. */
  private record Move(MemorySegment from, MemorySegment to) implements Runnable {
    @Override
    public void run() {
      MemorySegment.copy(from, 0, to, 0, from.byteSize());
    }
  }

  private final Collectives shared;
  private final Collective collective;
  private final int rank;
  private final int self;
  private final int size;

  /** The tensor that is worked on, of several where the collective is coalesced. */
  private int tensor;

  private ImmutableList.Builder<Runnable> work = ImmutableList.builder();

  Transfer(Collectives shared, Collective collective, int rank) {
    this.shared = shared;
    this.collective = collective;
    this.rank = rank;
    this.self = collective.group().self();
    this.size = collective.group().members().length();
  }

  /** {@return what happens before the ranks meet} */
  ImmutableList<Runnable> staging() {
    if (collective.variant() != Variant.NCCL) {
      return ImmutableList.of();
    }
    return IntStream.range(0, collective.operands().size())
        .<Runnable>mapToObj(
            t ->
                new Move(
                    own(collective.operands().get(t)),
                    shared.staged(rank, collective.group().index(), t)))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return what happens once they have met} */
  ImmutableList<Runnable> work() {
    work = ImmutableList.builder();
    for (tensor = 0; tensor < collective.operands().size(); tensor++) {
      if (collective.variant() == Variant.LOCAL) {
        local();
        continue;
      }
      switch (collective.kind()) {
        case ALL_REDUCE -> allReduce();
        case ALL_GATHER -> allGather();
        case REDUCE_SCATTER -> reduceScatter();
        case ALL_TO_ALL -> allToAll();
        case BROADCAST -> broadcast();
        case CUSTOM -> throw new IllegalStateException("a custom op is a local instruction");
      }
    }
    return work.build();
  }

  private TensorRef operand() {
    return collective.operands().get(tensor);
  }

  private TensorRef result() {
    return collective.results().get(tensor);
  }

  private MemorySegment own(TensorRef ref) {
    return shared.memory(rank).tensor(ref).memory();
  }

  private int rankOf(int peer) {
    return collective.group().members().get(peer);
  }

  /** The same collective on a peer, whose shapes may differ in an all_to_all. */
  private Collective at(int peer) {
    return shared.at(rankOf(peer), collective.group().index());
  }

  private MemorySegment operandOf(int peer) {
    return collective.variant() == Variant.NCCL
        ? shared.staged(rankOf(peer), collective.group().index(), tensor)
        : memoryOf(peer, operand(), at(peer).operands().get(tensor).type());
  }

  private MemorySegment resultOf(int peer) {
    return memoryOf(peer, result(), at(peer).results().get(tensor).type());
  }

  /** A peer's symmetric memory at the offset that this rank knows: it is the same there. */
  private MemorySegment memoryOf(int peer, TensorRef ref, TensorType type) {
    if (peer == self) {
      return own(ref);
    }
    if (ref.arena() != ArenaKind.SYMMETRIC) {
      throw new IllegalStateException(
          "rank %d cannot reach %s of rank %d: it is not in symmetric memory"
              .formatted(rank, ref, rankOf(peer)));
    }
    return shared
        .memory(rankOf(peer))
        .tensor(new TensorRef(ref.arena(), ref.index(), ref.offset(), type))
        .memory();
  }

  private List<MemorySegment> allOperands() {
    return IntStream.range(0, size).mapToObj(this::operandOf).toList();
  }

  private DType dtype() {
    return result().type().dtype();
  }

  private long elements() {
    return operand().type().numel();
  }

  /** A group of one: nothing is combined, so the bits stay as they are. */
  private void local() {
    var from = own(operand());
    var to = own(result());
    if (from.address() != to.address()) {
      move(from, 0, to, 0, from.byteSize());
    }
  }

  private void allReduce() {
    switch (collective.variant()) {
      case LOCAL, ONE_SHOT, NCCL -> reduce(0, elements(), List.of(own(result())), 0);
      case TWO_SHOT, MULTIMEM, NCCL_SYMM -> {
        long from = sliceStart(self);
        var targets = IntStream.range(0, size).mapToObj(this::resultOf).toList();
        reduce(from, sliceStart(self + 1), targets, from);
      }
      case ONE_SHOT_PUSH, TWO_SHOT_PUSH, PUSH, COPY_ENGINE, NCCL_CE, CUSTOM -> throw impossible();
    }
  }

  /** Slices are whole vectors; the last ones may be short or empty. */
  private long sliceStart(int slice) {
    long perVector = VECTOR / dtype().bytes();
    long vectors = Math.ceilDiv(elements(), perVector);
    return Math.min(elements(), Math.ceilDiv(vectors, size) * slice * perVector);
  }

  private void reduce(long from, long to, List<MemorySegment> targets, long at) {
    var reducer = new Reducer(collective.reduceOp().orElseThrow(), dtype());
    var sources = allOperands();
    work.add(() -> reducer.reduce(sources, from, to, targets, at));
  }

  private void allGather() {
    long part = operand().type().bytes();
    if (collective.spec().needsSymmetricResult()) {
      var mine = own(operand());
      for (int peer : peers()) {
        move(mine, 0, resultOf(peer), self * part, part);
      }
    } else {
      for (int peer : peers()) {
        move(operandOf(peer), 0, own(result()), peer * part, part);
      }
    }
  }

  private void reduceScatter() {
    long part = result().type().numel();
    reduce(self * part, (self + 1) * part, List.of(own(result())), 0);
  }

  private void broadcast() {
    int root = collective.root();
    if (collective.variant() == Variant.TWO_SHOT) {
      relay(root);
    } else if (!collective.spec().needsSymmetricResult()) {
      var source = operandOf(root);
      move(source, 0, own(result()), 0, source.byteSize());
    } else if (self == root) {
      var mine = own(operand());
      for (int peer : peers()) {
        move(mine, 0, resultOf(peer), 0, mine.byteSize());
      }
    }
  }

  /** Each rank but the root takes a slice from there and stores it to all of them. */
  private void relay(int root) {
    var source = operandOf(root);
    if (self == root) {
      move(source, 0, own(result()), 0, source.byteSize());
      return;
    }
    long slices = size - 1L;
    long slice = Math.ceilDiv(Math.ceilDiv(source.byteSize(), VECTOR), slices) * VECTOR;
    long from = Math.min(source.byteSize(), (self < root ? self : self - 1) * slice);
    long bytes = Math.min(slice, source.byteSize() - from);
    for (int peer : peers()) {
      if (peer != root) {
        move(source, from, resultOf(peer), from, bytes);
      }
    }
  }

  private void allToAll() {
    boolean push = collective.spec().needsSymmetricResult();
    for (int peer : peers()) {
      var other = at(peer);
      if (push) {
        long start = start(collective, collective.sendRows(), peer);
        long bytes = start(collective, collective.sendRows(), peer + 1) - start;
        move(own(operand()), start, resultOf(peer), start(other, other.receiveRows(), self), bytes);
      } else {
        long start = start(other, other.sendRows(), self);
        long bytes = start(other, other.sendRows(), self + 1) - start;
        move(
            operandOf(peer),
            start,
            own(result()),
            start(collective, collective.receiveRows(), peer),
            bytes);
      }
    }
  }

  /** Where the rows of a peer begin, in bytes; without row counts, all have equally many. */
  private long start(Collective of, ImmutableLongArray rows, int peer) {
    var type = of.operands().get(tensor).type();
    long rowBytes = type.dtype().bytes();
    for (int i = 1; i < type.rank(); i++) {
      rowBytes *= type.size(i);
    }
    return rowBytes
        * (rows.isEmpty() ? type.size(0) / size * peer : rows.subArray(0, peer).stream().sum());
  }

  /** Everybody begins with the next rank, so that no link carries everything at once. */
  private int[] peers() {
    return IntStream.rangeClosed(1, size).map(i -> (self + i) % size).toArray();
  }

  private void move(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
    if (bytes > 0) {
      work.add(new Move(from.asSlice(fromOffset, bytes), to.asSlice(toOffset, bytes)));
    }
  }

  private IllegalStateException impossible() {
    return new IllegalStateException(
        collective.variant() + " is not a variant of " + collective.kind());
  }
}
