package dev.symplan.planner;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.List;
import java.util.Optional;

/**
 * The machine that a plan is for, as the planner needs to know it.
 *
 * <p>Times are in microseconds, rates in bytes per microsecond (1 GB/s = 1,000 bytes/µs).
 *
 * @param name as given to {@code --target}
 * @param gpus the ranks that can address each other's memory
 * @param matrixRate multiply-adds per microsecond of a 16-bit matrix product
 * @param memoryRate bytes per microsecond of device memory
 * @param launchMicros what one more kernel costs
 * @param multicast whether NVLink multicast may be used
 * @param copyEngines whether copy engines reach peers
 * @param nccl NCCL's version as {@code major * 10000 + minor * 100 + patch}
 * @param curves how long each variant of each kind takes
 */
public record Target(
    String name,
    int gpus,
    double matrixRate,
    double memoryRate,
    double launchMicros,
    boolean multicast,
    boolean copyEngines,
    int nccl,
    ImmutableMap<Kind, ImmutableMap<Variant, Curve>> curves) {

  /** Four H200 of one host, multicast off: the machine of {@code docs/performance.md}. */
  public static final Target H200_X4 = Targets.hopper("h200x4", 4, 4_300_000, false);

  /** Eight H200 of one host with multicast. */
  public static final Target H200_X8 = Targets.hopper("h200x8", 8, 4_300_000, true);

  /** Eight H100 of one host with multicast. */
  public static final Target H100_X8 = Targets.hopper("h100x8", 8, 3_000_000, true);

  /** Eight B200 of one host with multicast. */
  public static final Target B200_X8 = Targets.blackwell("b200x8", 8);

  /** The host backend: ranks are threads that copy in one memory. */
  public static final Target HOST = Targets.host("host");

  /** {@return the target where nobody names one: H200s of one host} */
  public static Target defaultFor(int ranks) {
    return ranks <= H200_X4.gpus() ? H200_X4 : H200_X8;
  }

  /** {@return the built-in target called so} */
  public static Optional<Target> ofName(String name) {
    return Targets.all().filter(t -> t.name().equals(name)).findFirst();
  }

  /** {@return the names of the built-in targets, in a fixed order} */
  public static List<String> names() {
    return Targets.all().map(Target::name).toList();
  }

  /** {@return the curve of a variant, if the target has one} */
  public Optional<Curve> curve(Kind kind, Variant variant) {
    return Optional.ofNullable(curves.getOrDefault(kind, ImmutableMap.of()).get(variant));
  }

  /**
   * Latency plus bandwidth, for a protocol for small messages and one for large: the time is the
   * smaller of the two.
   *
   * @param latency microseconds before the first byte, group of 4
   * @param perRank microseconds more for each rank beyond 4
   * @param rate bytes per microsecond on the busiest link direction
   * @param bulkLatency as {@code latency}, for the protocol for large messages
   * @param bulkRate as {@code rate}
   * @param measured whether the figures were fitted to measurements of this machine, rather than
   *     carried over from a similar transfer
   */
  public record Curve(
      double latency,
      double perRank,
      double rate,
      double bulkLatency,
      double bulkRate,
      boolean measured) {

    static Curve of(double latency, double perRank, double rate, boolean measured) {
      return new Curve(latency, perRank, rate, latency, rate, measured);
    }

    /** {@return microseconds for {@code wireBytes} through the busiest link of a rank} */
    public double micros(double wireBytes, int ranks) {
      double hops = perRank * (ranks - 4);
      double small = latency + hops + wireBytes / rate;
      double bulk = bulkLatency + hops + wireBytes / bulkRate;
      return Math.max(1, Math.min(small, bulk));
    }
  }
}
