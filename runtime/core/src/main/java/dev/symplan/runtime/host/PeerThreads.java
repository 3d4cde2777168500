package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.plan.StreamKind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/** All ranks are threads of this process. */
final class PeerThreads implements Peers {
  private record Meeting(int index, ImmutableIntArray members) {}

  private final HostSync sync;
  private final ImmutableList<HostMemory> ranks;
  private final ImmutableList<ImmutableMap<StreamKind, MemorySegment>> staging;
  private final Map<Meeting, HostSync.Barrier> barriers = new HashMap<>();

  /**
   * @param owner the source of all memory
   */
  PeerThreads(Executable executable, Transfers transfers, HostSync sync, Arena owner) {
    this.sync = sync;
    this.ranks =
        executable.ranks().stream()
            .map(
                program ->
                    new HostMemory(
                        program, HostMemory.allocate(owner, executable.symmetricBytes()), owner))
            .collect(ImmutableList.toImmutableList());
    this.staging =
        executable.ranks().stream()
            .map(
                program ->
                    ImmutableMap.copyOf(
                        Maps.transformValues(
                            Staging.sizes(transfers, program.rank()),
                            bytes -> HostMemory.allocate(owner, bytes))))
            .collect(ImmutableList.toImmutableList());
  }

  @Override
  public HostMemory memory(int rank) {
    return ranks.get(rank);
  }

  @Override
  public MemorySegment staging(int rank, Collective collective) {
    return Objects.requireNonNull(staging.get(rank).get(collective.stream()));
  }

  @Override
  public Runnable meeting(GroupUse group) {
    HostSync.Barrier barrier;
    synchronized (barriers) {
      barrier =
          barriers.computeIfAbsent(
              new Meeting(group.index(), group.members()),
              meeting -> new HostSync.Barrier(meeting.members()));
    }
    int self = group.self();
    return () -> sync.meet(barrier, self);
  }

  @Override
  public Runnable meeting(Collective collective, int tensor) {
    return meeting(collective.group());
  }
}
