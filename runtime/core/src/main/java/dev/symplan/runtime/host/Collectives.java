package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableCollection;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.Region;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Workspace;
import dev.symplan.planner.plan.StreamKind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * The shared state of a session's ranks for their collectives: barriers, and the buffers of {@link
 * Variant#NCCL}.
 */
final class Collectives {

  /** What staged tensors are aligned to, in bytes. */
  private static final long ALIGNMENT = 128;

  private record Use(int rank, Region workspace) {}

  private record Meeting(int index, ImmutableIntArray members) {}

  private final List<HostMemory> ranks;
  private final HostSync rendezvous;
  private final Map<Meeting, HostSync.Barrier> barriers = new HashMap<>();
  private final Map<Use, int[]> pushes = new HashMap<>();

  private final Transfers transfers;

  /**
   * For each rank and stream, its operand of plain collectives. One buffer is enough, as those of a
   * stream come one after the other, with a barrier at each end.
   */
  private final ImmutableList<Map<StreamKind, MemorySegment>> bounce;

  Collectives(Executable executable, List<HostMemory> ranks, HostSync rendezvous, Arena owner) {
    this.ranks = ranks;
    this.rendezvous = rendezvous;
    this.transfers = new Transfers(executable);
    this.bounce =
        executable.ranks().stream()
            .map(program -> bounceBuffers(transfers.ofRank(program.rank()), owner))
            .collect(ImmutableList.toImmutableList());
  }

  private static Map<StreamKind, MemorySegment> bounceBuffers(
      ImmutableCollection<Collective> program, Arena owner) {
    var sizes = new EnumMap<StreamKind, Long>(StreamKind.class);
    for (var collective : program) {
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
  MemorySegment staged(int rank, Collective collective, int tensor) {
    var buffer = Objects.requireNonNull(bounce.get(rank).get(collective.stream()));
    return buffer.asSlice(
        staged(collective, tensor), collective.operands().get(tensor).type().storageBytes());
  }

  Transfers transfers() {
    return transfers;
  }

  HostMemory memory(int rank) {
    return ranks.get(rank);
  }

  /** {@return how often a rank has pushed through a workspace: one count for all who ask} */
  private int[] pushes(int rank, Region workspace) {
    synchronized (pushes) {
      return pushes.computeIfAbsent(new Use(rank, workspace), _ -> new int[1]);
    }
  }

  private HostSync.Barrier barrier(GroupUse group) {
    synchronized (barriers) {
      return barriers.computeIfAbsent(
          new Meeting(group.index(), group.members()),
          meeting -> new HostSync.Barrier(meeting.members()));
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
    Runnable meeting = () -> rendezvous.meet(barrier, self);
    var tensors = ImmutableList.<Runnable>builder();
    for (int tensor = 0; tensor < collective.operands().size(); tensor++) {
      var own = transfers.of(collective, tensor);
      int index = tensor;
      var halves =
          IntStream.range(0, collective.variant().needsWorkspace() ? Workspace.HALVES : 1)
              .mapToObj(half -> tasks(own, collective, rank, index, half, meeting))
              .toList();
      if (halves.size() == 1) {
        tensors.addAll(halves.getFirst());
      } else if (!own.isEmpty()) {
        var count = pushes(rank, collective.workspace().orElseThrow());
        tensors.add(() -> halves.get(count[0]++ % Workspace.HALVES).forEach(Runnable::run));
      }
    }
    var all = tensors.build();
    return () -> all.forEach(Runnable::run);
  }

  private ImmutableList<Runnable> tasks(
      List<Transfer> own, Collective collective, int rank, int tensor, int half, Runnable meeting) {
    var tasks = new TransferTasks(this, collective, rank, tensor, half);
    return own.stream()
        .map(transfer -> tasks.of(transfer, meeting))
        .collect(ImmutableList.toImmutableList());
  }
}
