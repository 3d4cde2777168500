package dev.symplan.planner.cost;

import com.google.common.math.IntMath;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.ConvolutionOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Launches;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Target.Knots;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.math.RoundingMode;
import java.util.List;
import java.util.Optional;

/** Predicted times on a target, in microseconds. */
public final class CostModel {

  private final Target target;

  /** Predicts times on a target. */
  public CostModel(Target target) {
    this.target = target;
  }

  /**
   * {@return the time of a collective by itself, launches and both barriers included}
   *
   * @param bytes of one rank's operands
   * @param tensors the number of these
   * @param reach how the ranks of its group lie
   */
  public double transferMicros(Kind kind, Variant variant, long bytes, int tensors, Reach reach) {
    double one =
        reach.isWithinDomain()
            ? transferMicros(kind, variant, bytes, reach.ranks())
            : crossing(kind, variant, bytes, reach).micros();
    int further = Launches.further(VariantSpec.of(kind, variant), tensors, reach.ranks());
    return one + further * target.launchMicros();
  }

  /**
   * The parts of the time of a collective between NVLink domains, all in µs.
   *
   * @param within as much as within one domain
   * @param fixed before its data is on the rails
   * @param rail on a rail that nothing else uses
   * @param latency after the last data has left
   * @param share the share of the rail's rate that it has there
   */
  public record Crossing(double within, double fixed, double rail, double latency, double share) {
    /** {@return a collective within a domain} */
    public static Crossing within(double micros) {
      return new Crossing(micros, 0, 0, 0, 0);
    }

    /** {@return the time of the collective by itself} */
    public double micros() {
      return Math.max(within, fixed + rail) + latency;
    }
  }

  /**
   * {@return the parts of the time of a collective of one tensor between domains; parameters as
   * above}
   */
  public Crossing crossing(Kind kind, Variant variant, long bytes, Reach reach) {
    var network = target.network();
    double sent = railBytes(kind, variant, bytes, reach);
    int hops = hops(kind, reach.domains());
    var curve =
        variant == Variant.NCCL
            ? Optional.ofNullable(network.curves().get(kind))
            : Optional.<Knots>empty();
    double latency = hops * curve.map(c -> c.micros(0)).orElse(network.latencyMicros());
    double rail =
        curve
            .map(c -> hops * c.micros(sent / hops) - latency)
            .orElse(sent / (1e3 * network.rate()));
    return new Crossing(
        transferMicros(kind, variant, bytes, reach.ranks()),
        fixedMicros(variant, reach.ranks()),
        rail,
        latency,
        curve.isEmpty() && network.railRate() == network.rate()
            ? 1
            : Math.min(1, sent / (1e3 * Math.max(1e-3, rail) * network.railRate())));
  }

  /**
   * {@return the traffic on a rank's rail, in bytes}
   *
   * <p>A library spreads what a domain sends over its rails; in an all_to_all or a
   * collective_permute, each rank sends what is its own.
   */
  public static double railBytes(Kind kind, Variant variant, long bytes, Reach reach) {
    double wire = VariantSpec.of(kind, variant).wire().bytes(bytes, reach.ranks());
    return switch (kind) {
      case ALL_TO_ALL -> (double) bytes * (reach.ranks() - reach.fewest()) / reach.ranks();
      // Any rank may be in a pair with one of another domain.
      case COLLECTIVE_PERMUTE -> wire;
      case ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, CUSTOM -> wire / reach.fewest();
    };
  }

  /** {@return the number of steps between domains that the last data to arrive has taken} */
  public static int hops(Kind kind, int domains) {
    return switch (kind) {
      // Up a tree and down again.
      case ALL_REDUCE -> 2 * IntMath.log2(domains, RoundingMode.CEILING);
      case BROADCAST -> IntMath.log2(domains, RoundingMode.CEILING);
      case COLLECTIVE_PERMUTE -> 1;
      case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, CUSTOM -> domains - 1;
    };
  }

  /** {@return the time of a collective of one tensor, between so many ranks of one domain} */
  public double transferMicros(Kind kind, Variant variant, long bytes, int ranks) {
    if (variant == Variant.LOCAL) {
      return copyMicros(bytes);
    }
    var spec = VariantSpec.of(kind, variant);
    return fixedMicros(variant, ranks)
        + target
            .curve(kind, variant, ranks)
            .map(curve -> curve.micros(spec.wire().bytes(bytes, ranks), ranks))
            .or(() -> pairMicros(spec, bytes, ranks))
            .orElseGet(() -> linkMicros(spec, bytes, ranks));
  }

  /** {@return whether the time of a collective was measured on the target between such ranks} */
  public boolean isMeasured(Kind kind, Variant variant, Reach reach) {
    return reach.isWithinDomain() && isMeasured(kind, variant, reach.ranks());
  }

  /** {@return the same of so many ranks of one domain} */
  public boolean isMeasured(Kind kind, Variant variant, int ranks) {
    return target
        .curve(kind, variant, ranks)
        .map(curve -> curve.measured() && curve.ranks() == ranks)
        .orElse(false);
  }

  /**
   * The time of an exchange of two ranks: as in a permutation, each of them sends one other rank
   * what passes its link.
   */
  private Optional<Double> pairMicros(VariantSpec spec, long bytes, int ranks) {
    return spec.kind() == Kind.COLLECTIVE_PERMUTE
        ? target
            .curve(Kind.ALL_TO_ALL, spec.variant(), 2)
            .map(curve -> curve.micros(spec.wire().bytes(bytes, ranks), 2))
        : Optional.empty();
  }

  /** The time of the link alone, for variants of which nothing else is known. */
  private double linkMicros(VariantSpec spec, long bytes, int ranks) {
    var link = target.link();
    int peers = spec.kind() == Kind.COLLECTIVE_PERMUTE ? 1 : ranks - 1;
    return link.latencyMicros() * peers
        + Math.max(
            spec.wire().sent(bytes, ranks) / (1e3 * link.sendRate()),
            spec.wire().received(bytes, ranks) / (1e3 * link.receiveRate()));
  }

  /** {@return the part of a collective's time that no curve describes} */
  public double fixedMicros(Variant variant, int ranks) {
    return target.launchMicros()
        + 2 * barrierMicros(variant, ranks)
        + (variant == Variant.COPY_ENGINE ? target.copyEngineMicros() : 0);
  }

  /**
   * {@return the cost of the plan's barrier before or after a collective; 0 if a library
   * synchronizes inside its kernel}
   */
  public double barrierMicros(Variant variant, int ranks) {
    return variant.hasPlannedBarriers() ? target.barrier().micros(ranks) : 0;
  }

  /**
   * {@return the exposed time of a collective when {@code beside} µs of compute run beside it: the
   * time of both less that of compute alone, so that what compute loses counts}
   */
  public double exposedMicros(Variant variant, double transfer, double beside) {
    var contention = variant.usesCopyEngines() ? target.copyEngineOverlap() : target.smOverlap();
    return contention.exposed(transfer, beside);
  }

  /**
   * {@return the exposed time of a collective behind the step that makes its operand, if both are
   * one kernel ({@link JoinedMakers})}
   *
   * @param transfer µs of the collective by itself
   * @param shared µs of the step that run at the same time; 0 if they are two kernels
   */
  public double behindMicros(double transfer, double shared) {
    return Math.max(0, transfer - shared);
  }

  /** {@return the cost of handing work to another stream and waiting for it: two events} */
  public double forkJoinMicros() {
    return target.launchMicros();
  }

  /**
   * {@return the time of a copy of a tensor between device and host memory, by itself}
   *
   * @param copy the result of the copy
   */
  public double hostCopyMicros(TensorType copy) {
    var link = target.hostLink();
    double rate = copy.space() == MemorySpace.HOST ? link.sendRate() : link.receiveRate();
    return link.latencyMicros() + copy.storageBytes() / (1e3 * rate);
  }

  /** {@return the time of a copy within one rank's memory} */
  public double copyMicros(long bytes) {
    return kernelMicros(2 * bytes);
  }

  /**
   * {@return the part of a kernel's cost in which it neither launches nor works; a collective
   * beside it gains nothing from that}
   */
  public double rampMicros() {
    return Math.max(0, target.compute().kernelMicros() - target.launchMicros());
  }

  /** {@return the time of a kernel that does nothing but read and write so many bytes} */
  public double kernelMicros(long bytes) {
    return target.compute().kernelMicros() + bytes / (1e3 * target.memoryRate());
  }

  /** {@return the time that so many bytes more add to a kernel} */
  public double streamedMicros(long bytes) {
    return kernelMicros(bytes) - kernelMicros(0);
  }

  /** {@return the time of a local op: the larger of its arithmetic and its memory traffic} */
  public double computeMicros(Op op) {
    // Copies of the host's memory take a stream of their own: see Timeline.
    if (op.def().has(OpTrait.BORDER)
        || op.def().has(OpTrait.HOST_COPY)
        || op.def().has(OpTrait.HOST_COPY_END)) {
      return 0;
    }
    long bytes = readBy(op) + bytesOf(op.results());
    double micros =
        Math.max(
            kernelMicros(bytes),
            target.compute().kernelMicros() + ArithmeticCost.micros(op, target.compute()));
    return ConvolutionOps.is(op.def())
        ? micros + streamedMicros(ConvolutionCost.copiedBytes(op))
        : micros;
  }

  /** An op that gathers rows reads no more of its first operand than it makes. */
  private static long readBy(Op op) {
    var operands = op.operands();
    if (!op.def().has(OpTrait.GATHER) || operands.isEmpty()) {
      return bytesOf(operands);
    }
    return Math.min(bytesOf(operands.subList(0, 1)), bytesOf(op.results()))
        + bytesOf(operands.subList(1, operands.size()));
  }

  private static long bytesOf(List<Value> values) {
    long bytes = 0;
    for (var value : values) {
      bytes += value.type() instanceof TensorType tensor ? tensor.bytes() : 0;
    }
    return bytes;
  }
}
