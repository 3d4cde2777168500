package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Barrier;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Comparator;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The machine that a plan is for, as the planner needs to know it: {@code docs/targets.md}
 * describes the file that holds one. The built-in targets are such files, too.
 *
 * <p>Times are in microseconds, rates in GB/s (1,000 bytes/µs).
 *
 * @param name as given to {@code --target}
 * @param gpus how many one host has
 * @param hostsPerDomain how many hosts one NVLink domain has; the GPUs of a domain, and no others,
 *     can address each other's memory
 * @param link one GPU's way to its peers in its domain
 * @param network one GPU's way to other domains
 * @param hostLink one GPU's way to the memory of its host
 * @param memoryRate GB/s of device memory
 * @param compute the compute rates of one GPU
 * @param launchMicros the cost of one more kernel of a collective
 * @param barrier the cost of a meeting of a group's ranks
 * @param copyEngineMicros from the start of copies by the copy engines to their first byte
 * @param smOverlap how much a collective that runs on SMs and compute beside it slow each other
 *     down
 * @param copyEngineOverlap the same for the copy engines
 * @param workspaceBytes the most memory that the {@link Workspace} of a collective may take
 * @param multicast whether the machine has NVLink multicast; plans use it only where {@link
 *     CompileOptions#multicast} says so
 * @param copyEngines whether copy engines reach peers
 * @param nccl NCCL's version as {@code major * 10000 + minor * 100 + patch}
 * @param sources the measurement behind each figure above, by its name in the file; the others were
 *     estimated
 * @param curves how long each variant of each kind takes, one for each world size that is known
 */
public record Target(
    String name,
    int gpus,
    int hostsPerDomain,
    Link link,
    Network network,
    Link hostLink,
    double memoryRate,
    Compute compute,
    double launchMicros,
    Barrier barrier,
    double copyEngineMicros,
    Contention smOverlap,
    Contention copyEngineOverlap,
    long workspaceBytes,
    boolean multicast,
    boolean copyEngines,
    int nccl,
    ImmutableMap<String, String> sources,
    ImmutableTable<Kind, Variant, ImmutableList<Curve>> curves) {

  /** Four H200 of one host, multicast off: the machine of {@code docs/performance.md}. */
  public static final Target H200_X4 = TargetFile.builtIn("h200x4");

  /** Eight H200 of one host with multicast. */
  public static final Target H200_X8 = TargetFile.builtIn("h200x8");

  /** Four H100 of one host, multicast off; measured on two. */
  public static final Target H100_X4 = TargetFile.builtIn("h100x4");

  /** Eight H100 of one host with multicast. */
  public static final Target H100_X8 = TargetFile.builtIn("h100x8");

  /** Eight B200 of one host with multicast. */
  public static final Target B200_X8 = TargetFile.builtIn("b200x8");

  /** The host backend: ranks are threads that copy in one memory. */
  public static final Target HOST = TargetFile.builtIn("host");

  public Target {
    if (name.isBlank() || gpus < 1 || hostsPerDomain < 1) {
      throw new IllegalArgumentException(
          "target '%s' needs a name, a GPU and a host, but has %s GPUs and %s hosts"
              .formatted(name, gpus, hostsPerDomain));
    }
    positive("memory rate", memoryRate);
    notNegative("launch", launchMicros);
    notNegative("copy engine start", copyEngineMicros);
    notNegative("workspace", workspaceBytes);
    for (var row : curves.rowMap().entrySet()) {
      for (var cell : row.getValue().entrySet()) {
        if (VariantSpec.find(row.getKey(), cell.getKey()).isEmpty() || cell.getValue().isEmpty()) {
          throw new IllegalArgumentException(
              "there is no %s of %s, or its curve is empty".formatted(cell.getKey(), row.getKey()));
        }
      }
    }
  }

  /** {@return the default target: H200s of one host} */
  public static Target defaultFor(int ranks) {
    return ranks <= H200_X4.gpus() ? H200_X4 : H200_X8;
  }

  /** {@return the built-in target called so} */
  public static Optional<Target> ofName(String name) {
    return Optional.of(name).filter(names()::contains).map(TargetFile::builtIn);
  }

  /**
   * {@return the target in a file}
   *
   * @throws dev.symplan.ir.diag.CompileException when it cannot be read or is not a target file
   */
  public static Target read(Path file) {
    return TargetFile.read(SourceReader.read(file));
  }

  /** {@return the names of the built-in targets, in a fixed order} */
  public static ImmutableList<String> names() {
    return TargetFile.BUILT_IN;
  }

  /** {@return NCCL's version as NCCL writes it, for example {@code 2.28.9}} */
  public String ncclVersion() {
    return ncclVersion(nccl);
  }

  /** {@return the same of any version, given as {@code major * 10000 + minor * 100 + patch}} */
  public static String ncclVersion(int nccl) {
    return "%s.%s.%s".formatted(nccl / 10_000, nccl / 100 % 100, nccl % 100);
  }

  /** {@return the same without a patch number of 0: {@code 2.28}, or {@code 2.30.7}} */
  static String shortNcclVersion(int nccl) {
    var text = ncclVersion(nccl);
    return nccl % 100 == 0 ? text.substring(0, text.lastIndexOf('.')) : text;
  }

  /** {@return the time of a variant in the nearest known world size} */
  public Optional<Curve> curve(Kind kind, Variant variant, int ranks) {
    @Nullable ImmutableList<Curve> known = curves.get(kind, variant);
    return known == null
        ? Optional.empty()
        : Optional.of(
            Collections.min(
                known, Comparator.comparingInt(curve -> Math.abs(curve.ranks() - ranks))));
  }

  /** {@return the target under another name, with other curves} */
  public Target with(
      String newName, ImmutableTable<Kind, Variant, ImmutableList<Curve>> newCurves) {
    return with(newName, nccl, newCurves);
  }

  /** {@return the target under another name, with another version of NCCL} */
  public Target withNccl(String newName, int version) {
    return with(newName, version, curves);
  }

  private Target with(
      String newName, int version, ImmutableTable<Kind, Variant, ImmutableList<Curve>> newCurves) {
    return new Target(
        newName,
        gpus,
        hostsPerDomain,
        link,
        network,
        hostLink,
        memoryRate,
        compute,
        launchMicros,
        barrier,
        copyEngineMicros,
        smOverlap,
        copyEngineOverlap,
        workspaceBytes,
        multicast,
        copyEngines,
        version,
        sources,
        newCurves);
  }

  /**
   * One GPU's way to its peers, or to its host.
   *
   * @param sendRate GB/s out of it, all peers together
   * @param receiveRate GB/s into it
   * @param latencyMicros until a byte that one GPU writes is seen by another; until the first byte
   *     of a copy has come
   */
  public record Link(double sendRate, double receiveRate, double latencyMicros) {
    /** PCIe 5.0 with 16 lanes, as published, less what its packets take; the latency is assumed. */
    public static final Link PCIE_5 = new Link(55, 55, 10);

    public Link {
      positive("send rate", sendRate);
      positive("receive rate", receiveRate);
      notNegative("link latency", latencyMicros);
    }
  }

  /**
   * One GPU's way to other domains: its rail.
   *
   * @param rate GB/s that one collective gets out of it, and as many into it
   * @param latencyMicros from the start of a message to its first byte
   * @param railRate GB/s that several collectives get together, if that is more
   * @param windows whether NCCL may use windows of memory over it, which needs adapters that GPUs
   *     can drive
   * @param curves by kind of collective, how long NCCL takes for each hop, in place of {@code
   *     latencyMicros} and {@code rate}; bytes are those on the rail, divided by the hops
   */
  public record Network(
      double rate,
      double latencyMicros,
      double railRate,
      boolean windows,
      ImmutableMap<Kind, Knots> curves) {
    /** 400 Gb/s for each GPU, as published for DGX H100, H200 and B200; the latency is assumed. */
    public static final Network NDR = new Network(50, 5, 50, false, ImmutableMap.of());

    public Network {
      positive("network rate", rate);
      notNegative("network latency", latencyMicros);
      if (!(railRate >= rate) || Double.isInfinite(railRate)) {
        throw new IllegalArgumentException(
            "a rail of %s GB/s cannot give one collective %s GB/s".formatted(railRate, rate));
      }
    }
  }

  /** A barrier of a group: {@code base} µs for two ranks, {@code perRank} more for each other. */
  public record Barrier(double base, double perRank) {
    public Barrier {
      notNegative("barrier", base);
      notNegative("barrier per rank", perRank);
    }

    /** {@return microseconds} */
    public double micros(int ranks) {
      return ranks < 2 ? 0 : base + perRank * (ranks - 2);
    }
  }

  /**
   * The slowdown of transfers and compute while they run side by side.
   *
   * @param compute the share that is added to compute's time
   * @param transfer the share that is added to the transfer's
   */
  public record Contention(double compute, double transfer) {
    public Contention {
      notNegative("compute slowdown", compute);
      notNegative("transfer slowdown", transfer);
    }

    /**
     * {@return the exposed time of a transfer when compute runs beside it: the time of both
     * together less that of compute alone}
     *
     * @param alone µs of the transfer by itself
     * @param beside µs of compute by itself
     */
    public double exposed(double alone, double beside) {
      double slowCompute = beside * (1 + compute);
      double slowTransfer = alone * (1 + transfer);
      // The one that ends first has run at the slower pace throughout; the rest of the other has
      // not.
      double together =
          slowTransfer <= slowCompute
              ? slowTransfer + beside - slowTransfer / (1 + compute)
              : slowCompute + alone - slowCompute / (1 + transfer);
      return together - beside;
    }
  }

  /**
   * A way to move a message.
   *
   * @param latency microseconds before the first byte
   * @param rate GB/s on the busiest link direction
   */
  public record Protocol(double latency, double rate) {
    public Protocol {
      notNegative("latency", latency);
      positive("rate", rate);
    }
  }

  /** The time of a transfer as a function of its bytes, for one world size. */
  public sealed interface Shape {

    /** {@return microseconds for {@code wireBytes} through the busiest link of a rank} */
    double micros(double wireBytes);
  }

  /**
   * The fastest of some protocols, but never less than the floor.
   *
   * @param floor microseconds that the smallest message takes
   * @param list for small messages first
   */
  public record Protocols(double floor, ImmutableList<Protocol> list) implements Shape {
    public Protocols {
      notNegative("floor", floor);
      if (list.isEmpty()) {
        throw new IllegalArgumentException("a curve needs at least one protocol");
      }
    }

    @Override
    public double micros(double wireBytes) {
      double fastest = Double.POSITIVE_INFINITY;
      for (var protocol : list) {
        fastest = Math.min(fastest, protocol.latency() + wireBytes / (1000 * protocol.rate()));
      }
      return Math.max(floor, fastest);
    }
  }

  /** A transfer of known time. */
  public record Knot(double wireBytes, double micros) {
    public Knot {
      notNegative("bytes", wireBytes);
      notNegative("time", micros);
    }
  }

  /**
   * Straight lines from knot to knot: a latency and a rate for each stretch. What is smaller than
   * the first takes as long as the first.
   *
   * @param list by rising bytes, of times that do not fall
   * @param rate GB/s of what goes beyond the last
   */
  public record Knots(ImmutableList<Knot> list, double rate) implements Shape {
    public Knots {
      positive("rate", rate);
      if (list.isEmpty()) {
        throw new IllegalArgumentException("a curve needs at least one point");
      }
      for (int i = 1; i < list.size(); i++) {
        if (list.get(i).wireBytes() <= list.get(i - 1).wireBytes()
            || list.get(i).micros() < list.get(i - 1).micros()) {
          throw new IllegalArgumentException(
              "%s cannot follow %s: bytes must rise, times must not fall"
                  .formatted(list.get(i), list.get(i - 1)));
        }
      }
    }

    @Override
    public double micros(double wireBytes) {
      var before = list.getFirst();
      if (wireBytes <= before.wireBytes()) {
        return before.micros();
      }
      for (var knot : list.subList(1, list.size())) {
        if (wireBytes <= knot.wireBytes()) {
          double share = (wireBytes - before.wireBytes()) / (knot.wireBytes() - before.wireBytes());
          return before.micros() + share * (knot.micros() - before.micros());
        }
        before = knot;
      }
      return before.micros() + (wireBytes - before.wireBytes()) / (1000 * rate);
    }
  }

  /**
   * The time of a variant's transfer, without launches, barriers of the group and the start of copy
   * engines.
   *
   * @param ranks the world size of the figures
   * @param perRank microseconds more for each rank beyond {@code ranks}
   * @param measured whether the figures were fitted to measurements of this machine, rather than
   *     carried over from a similar transfer
   * @param source where they come from, for people
   */
  public record Curve(int ranks, double perRank, Shape shape, boolean measured, String source) {
    public Curve {
      notNegative("per rank", perRank);
      if (ranks < 1) {
        throw new IllegalArgumentException(
            "a curve needs at least one rank, but has %s".formatted(ranks));
      }
    }

    /** {@return microseconds for {@code wireBytes} through the busiest link of a rank} */
    public double micros(double wireBytes, int worldSize) {
      return Math.max(0, shape.micros(wireBytes) + perRank * (worldSize - ranks));
    }

    /** {@return the curve for another machine, not measured there} */
    public Curve carriedOver(String from) {
      return new Curve(ranks, perRank, shape, false, "as on " + from);
    }
  }

  private static void positive(String what, double value) {
    if (!(value > 0) || Double.isInfinite(value)) {
      throw new IllegalArgumentException("%s must be above 0, but is %s".formatted(what, value));
    }
  }

  private static void notNegative(String what, double value) {
    if (!(value >= 0) || Double.isInfinite(value)) {
      throw new IllegalArgumentException(
          "%s must not be below 0, but is %s".formatted(what, value));
    }
  }
}
