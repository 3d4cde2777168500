package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.Region;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.machine.Workspace;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** The joint work of a session's ranks: collectives, and the meetings of custom ops. */
final class Collectives {
  private record Use(int rank, Region workspace) {}

  private final Peers peers;
  private final Transfers transfers;
  private final Map<Use, int[]> pushes = new HashMap<>();

  Collectives(Peers peers, Transfers transfers) {
    this.peers = peers;
    this.transfers = transfers;
  }

  /** {@return the memory of a rank's staged operand} */
  MemorySegment staged(int rank, Collective collective, int tensor) {
    return peers
        .staging(rank, collective)
        .asSlice(Staging.begin(collective, tensor), Staging.bytes(collective, tensor));
  }

  Transfers transfers() {
    return transfers;
  }

  HostMemory memory(int rank) {
    return peers.memory(rank);
  }

  /** {@return how often a rank has pushed through a workspace: one count for all who ask} */
  private int[] pushes(int rank, Region workspace) {
    synchronized (pushes) {
      return pushes.computeIfAbsent(new Use(rank, workspace), _ -> new int[1]);
    }
  }

  /** {@return the action that waits until all ranks of the group are at this op} */
  Runnable meeting(GroupUse group) {
    return peers.meeting(group);
  }

  /**
   * {@return the action that waits until all ranks have run the epilogue of a collective, if they
   * must}
   */
  Runnable end(Collective collective) {
    return endsBehindEpilogue(collective, transfers.of(collective, 0))
        ? peers.meeting(collective, 0)
        : () -> {};
  }

  private static boolean endsBehindEpilogue(Collective collective, List<Transfer> own) {
    return collective.epilogue().isFused()
        && !collective.spec().meetsBeforeEpilogue()
        && endsWithBarrier(own);
  }

  private static boolean endsWithBarrier(List<Transfer> own) {
    return !own.isEmpty() && own.getLast() instanceof Transfer.Barrier;
  }

  /**
   * {@return the action that carries out a rank's part of a collective, with all addresses
   * resolved; without its {@link #end} if that comes after an epilogue}
   *
   * @throws RuntimeException when the collective cannot be carried out
   */
  Runnable prepare(Collective collective, int rank) {
    var tensors = ImmutableList.<Runnable>builder();
    for (int tensor = 0; tensor < collective.operands().size(); tensor++) {
      var all = transfers.of(collective, tensor);
      var own = endsBehindEpilogue(collective, all) ? all.subList(0, all.size() - 1) : all;
      int index = tensor;
      var meeting = peers.meeting(collective, tensor);
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
    var actions = tensors.build();
    return () -> actions.forEach(Runnable::run);
  }

  private ImmutableList<Runnable> tasks(
      List<Transfer> own, Collective collective, int rank, int tensor, int half, Runnable meeting) {
    var tasks = new TransferTasks(this, collective, rank, tensor, half);
    return own.stream()
        .map(transfer -> tasks.of(transfer, meeting))
        .collect(ImmutableList.toImmutableList());
  }
}
