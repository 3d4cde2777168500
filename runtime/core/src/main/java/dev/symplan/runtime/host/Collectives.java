package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Variant;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of a session, each variant as its GPU twin moves the data: between the ranks'
 * arenas, at the planned offsets, inside its barriers. Only {@link Variant#NCCL} goes through
 * memory of the runtime's own.
 *
 * <p>Reductions go in group order, in f32 for 16-bit floats, so that all ranks and all variants
 * have the same bits.
 */
final class Collectives {

  /** What the own kernels move at once, in bytes; slices begin at multiples of it. */
  private static final long VECTOR = 16;

  private record Meeting(int index, ImmutableIntArray members) {}

  private final List<HostMemory> ranks;
  private final Rendezvous rendezvous;
  private final Map<Meeting, Rendezvous.Barrier> barriers = new ConcurrentHashMap<>();

  /** For each rank, what it brings to a plain collective. */
  private final List<ConcurrentMap<Integer, ImmutableList<MemorySegment>>> bounce;

  /** For each rank, its collectives by their index. */
  private final List<Map<Integer, Collective>> programs;

  Collectives(Executable executable, List<HostMemory> ranks, Rendezvous rendezvous) {
    this.ranks = ranks;
    this.rendezvous = rendezvous;
    this.bounce =
        executable.ranks().stream()
            .<ConcurrentMap<Integer, ImmutableList<MemorySegment>>>map(
                r -> new ConcurrentHashMap<>())
            .toList();
    this.programs =
        executable.ranks().stream()
            .map(
                program -> {
                  Map<Integer, Collective> own = new ConcurrentHashMap<>();
                  for (var instruction : program.instructions()) {
                    if (instruction instanceof Collective collective) {
                      own.put(collective.group().index(), collective);
                    }
                  }
                  return own;
                })
            .toList();
  }

  /** Waits until all ranks of the group are at this collective. */
  void meet(GroupUse group, String who) {
    rendezvous.meet(
        barriers.computeIfAbsent(
            new Meeting(group.index(), group.members()),
            meeting -> new Rendezvous.Barrier(meeting.members().length())),
        who);
  }

  void run(Collective collective, int rank) {
    var who = "rank %d, %s".formatted(rank, collective.name());
    if (collective.variant() == Variant.NCCL) {
      // Operands are the rank's own affair: it brings a copy, which peers read.
      bounce.get(rank).put(collective.group().index(), copies(collective, rank));
    }
    if (collective.startBarrier()) {
      meet(collective.group(), who);
    }
    for (int i = 0; i < collective.operands().size(); i++) {
      new Transfer(collective, i, rank).run();
    }
    if (collective.endBarrier()) {
      meet(collective.group(), who);
    }
  }

  private ImmutableList<MemorySegment> copies(Collective collective, int rank) {
    var copies = ImmutableList.<MemorySegment>builder();
    for (var operand : collective.operands()) {
      var source = ranks.get(rank).tensor(operand).memory();
      copies.add(Arena.ofAuto().allocate(Math.max(1, source.byteSize())).copyFrom(source));
    }
    return copies.build();
  }

  /** One tensor of one collective, as one rank carries it out. */
  private final class Transfer {
    private final Collective collective;
    private final int tensor;
    private final int rank;
    private final int self;
    private final int size;
    private final HostTensor result;
    private final int width;

    Transfer(Collective collective, int tensor, int rank) {
      this.collective = collective;
      this.tensor = tensor;
      this.rank = rank;
      this.self = collective.group().self();
      this.size = collective.group().members().length();
      this.result = ranks.get(rank).tensor(collective.results().get(tensor));
      this.width = result.dtype().bytes();
    }

    void run() {
      switch (collective.kind()) {
        case ALL_REDUCE -> allReduce();
        case ALL_GATHER -> allGather();
        case REDUCE_SCATTER -> reduceScatter();
        case ALL_TO_ALL -> allToAll();
        case BROADCAST -> broadcast();
        case CUSTOM -> throw new IllegalStateException("a custom op is a local instruction");
      }
    }

    private int rankOf(int peer) {
      return collective.group().members().get(peer);
    }

    private MemorySegment operandOf(int peer) {
      if (collective.variant() == Variant.NCCL) {
        @Nullable ImmutableList<MemorySegment> brought =
            bounce.get(rankOf(peer)).get(collective.group().index());
        if (brought == null) {
          throw new IllegalStateException("rank " + rankOf(peer) + " brought nothing");
        }
        return brought.get(tensor);
      }
      return memoryOf(peer, collective.operands().get(tensor));
    }

    private MemorySegment resultOf(int peer) {
      return memoryOf(peer, collective.results().get(tensor));
    }

    /** A peer's symmetric memory at the offset that this rank knows: it is the same there. */
    private MemorySegment memoryOf(int peer, TensorRef ref) {
      return ranks.get(rankOf(peer)).tensor(ref).memory();
    }

    private long elements() {
      return collective.operands().get(tensor).type().numel();
    }

    private List<MemorySegment> allOperands() {
      var all = ImmutableList.<MemorySegment>builder();
      for (int peer = 0; peer < size; peer++) {
        all.add(operandOf(peer));
      }
      return all.build();
    }

    private void allReduce() {
      switch (collective.variant()) {
        case LOCAL, ONE_SHOT, NCCL -> reduce(0, elements(), List.of(result.memory()), 0);
        case TWO_SHOT, MULTIMEM, NCCL_SYMM -> {
          long from = sliceStart(self);
          var targets = ImmutableList.<MemorySegment>builder();
          for (int peer = 0; peer < size; peer++) {
            targets.add(resultOf(peer));
          }
          reduce(from, sliceStart(self + 1), targets.build(), from);
        }
        case PUSH, COPY_ENGINE, CUSTOM -> throw impossible();
      }
    }

    /** Slices are whole vectors; the last ones may be short or empty. */
    private long sliceStart(int slice) {
      long perVector = VECTOR / width;
      long vectors = Math.ceilDiv(elements(), perVector);
      return Math.min(elements(), Math.ceilDiv(vectors, size) * slice * perVector);
    }

    private void reduce(long from, long to, List<MemorySegment> targets, long at) {
      Reducer.reduce(collective.reduceOp(), result.dtype(), allOperands(), from, to, targets, at);
    }

    private void allGather() {
      long part = elements() * width;
      if (collective.variant().needsSymmetricResult(Kind.ALL_GATHER)) {
        toAll((peer, target) -> copy(operandOf(self), 0, target, self * part, part));
      } else {
        fromAll((peer, source) -> copy(source, 0, result.memory(), peer * part, part));
      }
    }

    private void reduceScatter() {
      long part = result.type().numel();
      reduce(self * part, (self + 1) * part, List.of(result.memory()), 0);
    }

    private void broadcast() {
      int root = collective.root();
      long bytes = elements() * width;
      if (!collective.variant().needsSymmetricResult(Kind.BROADCAST)) {
        copy(operandOf(root), 0, result.memory(), 0, bytes);
      } else if (self == root) {
        toAll((peer, target) -> copy(operandOf(self), 0, target, 0, bytes));
      }
    }

    private void allToAll() {
      if (collective.variant().needsSymmetricResult(Kind.ALL_TO_ALL)) {
        toAll(
            (peer, target) -> {
              var other = at(peer);
              long sent = rowBytes(collective.sendRows(), peer, collective);
              checkRows(sent, rowBytes(other.receiveRows(), self, other), rank, rankOf(peer));
              copy(
                  operandOf(self),
                  startBytes(collective.sendRows(), peer, collective),
                  target,
                  startBytes(other.receiveRows(), self, other),
                  sent);
            });
      } else {
        fromAll(
            (peer, source) -> {
              var other = at(peer);
              long sent = rowBytes(other.sendRows(), self, other);
              checkRows(
                  sent, rowBytes(collective.receiveRows(), peer, collective), rankOf(peer), rank);
              copy(
                  source,
                  startBytes(other.sendRows(), self, other),
                  result.memory(),
                  startBytes(collective.receiveRows(), peer, collective),
                  sent);
            });
      }
    }

    /** The same collective on a peer, whose splits may differ. */
    private Collective at(int peer) {
      return Objects.requireNonNull(programs.get(rankOf(peer)).get(collective.group().index()));
    }

    private void checkRows(long sent, long expected, int from, int to) {
      if (sent != expected) {
        throw new RunException(
            "rank %d sends %d bytes to rank %d, which expects %d: the split sizes do not match"
                .formatted(from, sent, to, expected));
      }
    }

    private long rowBytes(ImmutableLongArray rows, int peer, Collective of) {
      long own = rows.isEmpty() ? equalRows(of) : rows.get(peer);
      return own * bytesPerRow(of);
    }

    private long startBytes(ImmutableLongArray rows, int peer, Collective of) {
      long before = rows.isEmpty() ? equalRows(of) * peer : rows.subArray(0, peer).stream().sum();
      return before * bytesPerRow(of);
    }

    private long equalRows(Collective of) {
      return of.operands().get(tensor).type().size(0) / size;
    }

    private long bytesPerRow(Collective of) {
      var type = of.operands().get(tensor).type();
      long elements = 1;
      for (int i = 1; i < type.rank(); i++) {
        elements *= type.size(i);
      }
      return elements * width;
    }

    private interface Move {
      void run(int peer, MemorySegment memory);
    }

    /** Begins with the next rank, so that no link carries everything at once. */
    private void toAll(Move move) {
      for (int i = 1; i <= size; i++) {
        int peer = (self + i) % size;
        move.run(peer, resultOf(peer));
      }
    }

    private void fromAll(Move move) {
      for (int i = 1; i <= size; i++) {
        int peer = (self + i) % size;
        move.run(peer, operandOf(peer));
      }
    }

    private void copy(
        MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
      if (bytes > 0) {
        MemorySegment.copy(from, fromOffset, to, toOffset, bytes);
      }
    }

    private IllegalStateException impossible() {
      return new IllegalStateException(
          collective.variant() + " is no variant of " + collective.kind());
    }
  }
}
