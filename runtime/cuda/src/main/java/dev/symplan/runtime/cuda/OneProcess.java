package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.cuda.DeviceProgram;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Sets up a session that has all ranks. In one process, memory has the same address for all ranks.
 */
final class OneProcess {
  private OneProcess() {}

  /** Allocates memory, has it bound to multicast objects where there are teams, joins the ranks. */
  static void prepare(
      LocalRanks locals,
      Executable executable,
      ImmutableList<DeviceProgram> programs,
      MulticastTeams teams,
      ProductTimer timer,
      Duration timeout) {
    var members = new ConcurrentHashMap<Integer, MulticastMember>();
    locals.forAll(
        local -> {
          var sharing =
              teams.isEmpty() ? Sharing.WithinProcess.WITHIN_PROCESS : mapped(local, locals, teams);
          local.open(
              executable.ranks().get(local.rank()),
              programs.get(local.rank()),
              executable.symmetricBytes(),
              sharing,
              timeout);
          if (sharing instanceof MappedPeers.Own own) {
            var member = own.member(local.rank());
            local.gpu().onClose(member::close);
            members.put(local.rank(), member);
          }
        });
    if (!teams.isEmpty()) {
      MulticastMember.joinWithin(step -> locals.forAll(local -> step.accept(of(local, members))));
    }
    var products =
        ProductChoices.agreed(locals.onAll(local -> timer.choose(local.gpu())).values().asList());
    Peers peers = (rank, region) -> locals.get(rank).gpu().memory().region(region).address();
    var ids = Communicators.ids(programs);
    locals.forAll(
        local ->
            local
                .gpu()
                .prepare(teams.isEmpty() ? peers : peers.with(of(local, members)), ids, products));
  }

  /** NCCL's memory need not be of a size that multicast objects take. */
  private static MappedPeers.Own mapped(LocalRank local, LocalRanks locals, MulticastTeams teams) {
    var devices =
        locals.ranks().stream()
            .map(rank -> locals.get(rank).device())
            .collect(ImmutableList.toImmutableList());
    return new MappedPeers.Own(
        local.device(),
        devices,
        teams,
        new CudaMemoryDriver(new Check(local.rank()), false, false));
  }

  private static MulticastMember of(LocalRank local, Map<Integer, MulticastMember> members) {
    return Objects.requireNonNull(members.get(local.rank()));
  }
}
