package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.Region;
import dev.symplan.codegen.RankProgram;
import dev.symplan.planner.StreamKind;
import dev.symplan.planner.Variant;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What the ranks of a session share for their collectives: barriers, and the buffers that {@link
 * Variant#NCCL} goes through.
 */
final class Collectives {

  /** What staged tensors are aligned to, in bytes. */
  private static final long ALIGNMENT = 128;

  private record Use(int rank, Region workspace) {}

  private record Meeting(int index, ImmutableIntArray members) {}

  private final List<HostMemory> ranks;
  private final Rendezvous rendezvous;
  private final Map<Meeting, Rendezvous.Barrier> barriers = new HashMap<>();
  private final Map<Use, int[]> pushes = new HashMap<>();

  /** For each rank, its collectives by their index. */
  private final ImmutableList<ImmutableMap<Integer, Collective>> programs;

  /**
   * For each rank and stream, what it brings to plain collectives. One buffer is enough, as those
   * of a stream come one after the other, with a barrier at each end.
   */
  private final ImmutableList<Map<StreamKind, MemorySegment>> bounce;

  Collectives(Executable executable, List<HostMemory> ranks, Rendezvous rendezvous, Arena owner) {
    this.ranks = ranks;
    this.rendezvous = rendezvous;
    this.programs =
        executable.ranks().stream()
            .map(Collectives::byIndex)
            .collect(ImmutableList.toImmutableList());
    this.bounce =
        programs.stream()
            .map(program -> bounceBuffers(program, owner))
            .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableMap<Integer, Collective> byIndex(RankProgram program) {
    var own = ImmutableMap.<Integer, Collective>builder();
    for (var instruction : program.instructions()) {
      if (instruction instanceof Collective collective) {
        own.put(collective.group().index(), collective);
      }
    }
    return own.buildOrThrow();
  }

  private static Map<StreamKind, MemorySegment> bounceBuffers(
      ImmutableMap<Integer, Collective> program, Arena owner) {
    var sizes = new EnumMap<StreamKind, Long>(StreamKind.class);
    for (var collective : program.values()) {
      if (collective.variant() == Variant.NCCL) {
        long bytes = staged(collective, collective.operands().size());
        sizes.merge(collective.stream(), bytes, Math::max);
      }
    }
    var buffers = new EnumMap<StreamKind, MemorySegment>(StreamKind.class);
    sizes.forEach((stream, bytes) -> buffers.put(stream, HostMemory.allocate(owner, bytes)));
    return buffers;
  }

  /** {@return where a tensor begins among the staged operands of a collective} */
  private static long staged(Collective collective, int tensor) {
    return collective.operands().stream()
        .limit(tensor)
        .mapToLong(ref -> Math.ceilDiv(ref.type().storageBytes(), ALIGNMENT) * ALIGNMENT)
        .sum();
  }

  /** {@return the memory of a rank's staged operand} */
  MemorySegment staged(int rank, int index, int tensor) {
    var collective = at(rank, index);
    var buffer = Objects.requireNonNull(bounce.get(rank).get(collective.stream()));
    return buffer.asSlice(
        staged(collective, tensor), collective.operands().get(tensor).type().storageBytes());
  }

  /** {@return the same collective on a peer} */
  Collective at(int rank, int index) {
    return Objects.requireNonNull(programs.get(rank).get(index));
  }

  HostMemory memory(int rank) {
    return ranks.get(rank);
  }

  /** {@return how often a rank has pushed through a workspace: one count for all who ask} */
  int[] pushes(int rank, Region workspace) {
    synchronized (pushes) {
      return pushes.computeIfAbsent(new Use(rank, workspace), _ -> new int[1]);
    }
  }

  private Rendezvous.Barrier barrier(GroupUse group) {
    synchronized (barriers) {
      return barriers.computeIfAbsent(
          new Meeting(group.index(), group.members()),
          meeting -> new Rendezvous.Barrier(meeting.members()));
    }
  }

  /** Waits until all ranks of the group are at this collective. */
  void meet(GroupUse group) {
    rendezvous.meet(barrier(group), group.self());
  }

  /**
   * {@return what carries out a rank's part of a collective, with all addresses resolved}
   *
   * @throws RuntimeException when the collective cannot be carried out
   */
  Runnable prepare(Collective collective, int rank) {
    var barrier = barrier(collective.group());
    int self = collective.group().self();
    if (collective.variant().needsWorkspace()) {
      return new PushTransfer(this, collective, rank).prepare(() -> rendezvous.meet(barrier, self));
    }
    var transfer = new Transfer(this, collective, rank);
    var before = transfer.staging();
    var work = transfer.work();
    // Plain collectives meet as the library does, whatever the plan says of barriers.
    boolean plain = collective.variant() == Variant.NCCL;
    boolean start = collective.startBarrier() || plain;
    boolean end = collective.endBarrier() || plain;
    return () -> {
      before.forEach(Runnable::run);
      if (start) {
        rendezvous.meet(barrier, self);
      }
      work.forEach(Runnable::run);
      if (end) {
        rendezvous.meet(barrier, self);
      }
    };
  }
}
