package dev.symplan.planner.cost;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Op;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import org.jspecify.annotations.Nullable;

/** Predicted times on a target, in microseconds. */
public final class CostModel {

  /** SM collectives and compute slow each other down: this much of their time is not hidden. */
  private static final double SM_OVERLAP = 0.75;

  /** Copy engines take only link and memory bandwidth from compute beside them. */
  private static final double COPY_ENGINE_OVERLAP = 0.15;

  /** What the left factor of a product is called; addmm's self is the summand. */
  private static final ImmutableList<String> LEFT_FACTORS =
      ImmutableList.of("mat1", "batch1", "input", "self");

  private final Target target;

  public CostModel(Target target) {
    this.target = target;
  }

  /**
   * {@return the bytes that pass the busiest link direction of one rank}
   *
   * @param bytes of one rank's operand
   */
  public static double wireBytes(Kind kind, Variant variant, long bytes, int ranks) {
    double others = ranks - 1.0;
    return switch (kind) {
      case ALL_REDUCE ->
          switch (variant) {
            case ONE_SHOT -> others * bytes;
            // The switch adds: each rank loads its slice once and stores it once.
            case MULTIMEM -> bytes + (double) bytes / ranks;
            case LOCAL, TWO_SHOT, PUSH, COPY_ENGINE, NCCL_SYMM, NCCL, CUSTOM ->
                2 * others / ranks * bytes;
          };
      case ALL_GATHER -> others * bytes;
      case REDUCE_SCATTER ->
          variant == Variant.MULTIMEM ? (double) bytes / ranks : others / ranks * bytes;
      case ALL_TO_ALL -> others / ranks * bytes;
      // The root's link carries every copy, unless the switch or a ring replicates them.
      case BROADCAST ->
          variant == Variant.NCCL || variant == Variant.MULTIMEM ? bytes : others * bytes;
      case CUSTOM -> bytes;
    };
  }

  /** {@return the time of a collective by itself; infinite where the target has no such variant} */
  public double transferMicros(Kind kind, Variant variant, long bytes, int ranks) {
    return target
        .curve(kind, variant)
        .map(
            curve ->
                variant == Variant.LOCAL
                    ? curve.micros(2.0 * bytes, 4)
                    : curve.micros(wireBytes(kind, variant, bytes, ranks), ranks))
        .orElse(Double.POSITIVE_INFINITY);
  }

  /**
   * {@return what is left of a collective's time when {@code beside} µs of compute run beside it}
   */
  public double exposedMicros(Variant variant, double transfer, double beside) {
    double kept = variant == Variant.COPY_ENGINE ? COPY_ENGINE_OVERLAP : SM_OVERLAP;
    double hidden = Math.min(transfer, beside);
    return transfer - hidden + kept * hidden;
  }

  /** {@return what it costs to hand work to another stream and wait for it: two events} */
  public double forkJoinMicros() {
    return target.launchMicros();
  }

  /** {@return the time of a copy within one rank's memory} */
  public double copyMicros(long bytes) {
    return target.launchMicros() + 2.0 * bytes / target.memoryRate();
  }

  /** {@return the time of a kernel that does nothing but read and write so many bytes} */
  public double kernelMicros(long bytes) {
    return target.launchMicros() + bytes / target.memoryRate();
  }

  /** {@return the time of a local op: the larger of its arithmetic and its memory traffic} */
  public double computeMicros(Op op) {
    double bytes = 0;
    var read = new long[1];
    op.forEachOperand(value -> read[0] += bytesOf(value));
    bytes += read[0];
    for (var result : op.results()) {
      bytes += bytesOf(result);
    }
    double arithmetic = op.def().has(OpTrait.MATMUL) ? multiplyAdds(op) / target.matrixRate() : 0;
    return target.launchMicros() + Math.max(arithmetic, bytes / target.memoryRate());
  }

  /** Every element of a product takes as many multiply-adds as the left factor's rows are long. */
  private static double multiplyAdds(Op op) {
    if (!(op.results().getFirst().type() instanceof TensorType result)) {
      return 0;
    }
    if (matrix(op, "key") instanceof TensorType key) {
      // Attention: two products, over the head size and over the keys.
      return 2.0 * result.numel() * key.size(key.rank() - 2);
    }
    if (op.def().schema().hasParam("transposed")
        && matrix(op, "weight") instanceof TensorType weight) {
      // A convolution: each element takes the weights of one output channel.
      return (double) result.numel() * weight.numel() / Math.max(1, weight.size(0));
    }
    for (var left : LEFT_FACTORS) {
      if (matrix(op, left) instanceof TensorType factor) {
        return (double) result.numel() * factor.size(factor.rank() - 1);
      }
    }
    return 0;
  }

  private static @Nullable TensorType matrix(Op op, String param) {
    return op.def().schema().hasParam(param)
            && op.arg(param) instanceof Arg.Ref(Value value)
            && value.type() instanceof TensorType tensor
            && tensor.rank() >= 2
        ? tensor
        : null;
  }

  private static long bytesOf(Value value) {
    return value.type() instanceof TensorType tensor ? tensor.bytes() : 0;
  }
}
