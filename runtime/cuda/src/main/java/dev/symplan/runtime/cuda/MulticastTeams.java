package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.runtime.failure.RunException;
import java.util.List;
import java.util.stream.Stream;

/**
 * The sets of ranks whose memory one address is to stand for, in an order that all ranks agree on.
 * The first rank of each makes the multicast object, and the others join.
 */
record MulticastTeams(ImmutableSet<ImmutableSortedSet<Integer>> all) {

  /** {@return the teams of the collectives that are planned for multicast} */
  static MulticastTeams planned(Executable executable) {
    return new MulticastTeams(
        executable.ranks().stream()
            .flatMap(rank -> rank.instructions().stream())
            .flatMap(step -> step instanceof Collective c ? Stream.of(c) : Stream.of())
            .filter(collective -> collective.spec().needsMulticast())
            .map(collective -> team(collective.group().members()))
            .collect(ImmutableSet.toImmutableSet()));
  }

  /** {@return the teams of the kernels of all ranks} */
  static MulticastTeams of(List<DeviceProgram> programs) {
    return new MulticastTeams(
        programs.stream()
            .flatMap(program -> program.steps().stream())
            .flatMap(step -> step.launches().stream())
            .flatMap(launch -> launch.words().stream())
            .flatMap(
                word -> word instanceof KernelArgument.Multicast m ? Stream.of(m) : Stream.of())
            .map(multicast -> team(multicast.members()))
            .collect(ImmutableSet.toImmutableSet()));
  }

  /** {@return the members, in whatever order a group has them} */
  static ImmutableSortedSet<Integer> team(ImmutableIntArray members) {
    return ImmutableSortedSet.copyOf(members.asList());
  }

  /**
   * Checks that multicast is on if there are teams.
   *
   * @throws RunException when it is off
   */
  void requireAllowed(boolean multicast) {
    if (!isEmpty() && !multicast) {
      throw new RunException(
          "backend cuda: the plan has NVLink multicast between the ranks %s, which is off; add --multicast=on"
              .formatted(all.iterator().next()));
    }
  }

  boolean isEmpty() {
    return all.isEmpty();
  }

  /**
   * {@return the unit of an arena's size} It is the same on all ranks, whatever teams they are in:
   * arenas of one team have the same size.
   */
  ImmutableSet<Long> granularities(long bytes, MemoryDriver driver) {
    return all.stream()
        .map(ImmutableSortedSet::size)
        .distinct()
        .map(size -> driver.multicastGranularity(size, bytes))
        .collect(ImmutableSet.toImmutableSet());
  }
}
