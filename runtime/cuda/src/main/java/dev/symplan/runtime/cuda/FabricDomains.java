package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.launch.Host;
import dev.symplan.runtime.launch.World;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/**
 * How far a rank's memory reaches: its host, or all hosts whose drivers give fabric handles. Two
 * fabrics are not told apart here: the driver refuses a handle of another one.
 */
final class FabricDomains {
  private static final String FABRIC = "NVLink fabric";

  private FabricDomains() {}

  /**
   * {@return by rank, a host that stands for all whose memory it can reach; all ranks call this at
   * once}
   *
   * @param hasFabric whether the driver gives fabric handles for the GPU of this process; asked
   *     only if there are several hosts
   */
  static ImmutableList<Host> of(World world, BooleanSupplier hasFabric) {
    var hosts = world.hosts();
    if (world.isOneHost()) {
      return hosts;
    }
    var own = new byte[] {(byte) (hasFabric.getAsBoolean() ? 1 : 0)};
    var said = world.gather("NVLink fabrics", own);
    return hosts.stream()
        .map(
            host ->
                IntStream.range(0, hosts.size())
                        .filter(rank -> hosts.get(rank).id().equals(host.id()))
                        .allMatch(rank -> said.get(rank)[0] == 1)
                    ? new Host(FABRIC, host.name())
                    : host)
        .collect(ImmutableList.toImmutableList());
  }
}
