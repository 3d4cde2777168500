package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import dev.symplan.planner.Verdict.Reason;
import java.util.Optional;

/**
 * Which variants can carry out a collective on a target, whatever it costs.
 *
 * <p>NCCL's limits are those of its symmetric kernels up to 2.30 and of {@code ncclRedOp_t}; those
 * of the own kernels are what the kernels are written for.
 */
final class Eligibility {
  private static final ImmutableSet<DType> SHORT_FLOATS =
      ImmutableSet.of(DType.F32, DType.BF16, DType.F16);
  private static final ImmutableSet<DType> NCCL_SYMM_TYPES =
      ImmutableSet.of(DType.F32, DType.BF16, DType.F16, DType.F8E4M3FN, DType.F8E5M2);
  private static final ImmutableSet<DType> NCCL_UNREDUCED =
      ImmutableSet.of(
          DType.I16,
          DType.U16,
          DType.C32,
          DType.C64,
          DType.C128,
          DType.F8E4M3FNUZ,
          DType.F8E5M2FNUZ,
          DType.F8E8M0FNU);
  private static final ImmutableSet<String> NCCL_REDUCTIONS =
      ImmutableSet.of("sum", "avg", "product", "min", "max");

  /** Windows came with 2.27; AVG in symmetric kernels with 2.30. */
  private static final int NCCL_WINDOWS = 22700;

  private static final int NCCL_SYMM_AVG = 23000;

  /** From here on, one symmetric kernel carries out all calls of a group. */
  private static final int NCCL_SYMM_GROUP = 22800;

  /** A rejection, with the facts for people. */
  record Rejection(Reason reason, String detail) {}

  private final Target target;

  Eligibility(Target target) {
    this.target = target;
  }

  /** {@return why a variant that exists for the kind cannot be used here; empty if it can} */
  Optional<Rejection> reject(Collective collective, Variant variant, int ranks) {
    if (variant == Variant.CUSTOM) {
      return Optional.empty();
    }
    if ((ranks == 1) != (variant == Variant.LOCAL)) {
      return rejected(
          Reason.GROUP_SIZE,
          ranks == 1 ? "the group has one rank" : "the group has %d ranks".formatted(ranks));
    }
    if (variant != Variant.NCCL && variant != Variant.LOCAL && ranks > target.gpus()) {
      return rejected(
          Reason.NO_PEER_ACCESS,
          "%d ranks, but %s has %d GPUs that reach each other"
              .formatted(ranks, target.name(), target.gpus()));
    }
    boolean reduces =
        collective.kind() == Kind.ALL_REDUCE || collective.kind() == Kind.REDUCE_SCATTER;
    var op = collective.reduceOp();
    var dtype = collective.dtype();
    return switch (variant) {
      case LOCAL, ONE_SHOT, PUSH, CUSTOM -> Optional.empty();
      case TWO_SHOT ->
          op.equals("product") || op.startsWith("b")
              ? rejected(Reason.REDUCTION, "two-shot kernels know sum, avg, min and max, not " + op)
              : floatsOnly(dtype, SHORT_FLOATS);
      case MULTIMEM -> {
        if (!target.multicast()) {
          yield rejected(Reason.NO_MULTICAST, "target has no multicast");
        }
        if (reduces && !op.equals("sum")) {
          yield rejected(Reason.REDUCTION, "the switch adds, it does not " + op);
        }
        yield reduces ? floatsOnly(dtype, SHORT_FLOATS) : Optional.empty();
      }
      case COPY_ENGINE ->
          target.copyEngines()
              ? Optional.empty()
              : rejected(Reason.NO_COPY_ENGINE, "target has no copy engine that reaches peers");
      case NCCL_SYMM -> {
        if (target.nccl() < NCCL_WINDOWS) {
          yield rejected(Reason.LIBRARY, "windows need NCCL 2.27");
        }
        if (collective.operands().size() > 1 && !takesSeveral(variant)) {
          yield rejected(Reason.LIBRARY, "several tensors in symmetric kernels need NCCL 2.28");
        }
        if (reduces && op.equals("avg") && target.nccl() < NCCL_SYMM_AVG) {
          yield rejected(Reason.LIBRARY, "avg in symmetric kernels needs NCCL 2.30");
        }
        if (reduces && !op.equals("sum") && !op.equals("avg")) {
          yield rejected(Reason.REDUCTION, "NCCL's symmetric kernels add, they do not " + op);
        }
        yield reduces ? floatsOnly(dtype, NCCL_SYMM_TYPES) : Optional.empty();
      }
      case NCCL -> {
        if (reduces && !NCCL_REDUCTIONS.contains(op)) {
          yield rejected(Reason.REDUCTION, "NCCL has no " + op);
        }
        yield reduces && NCCL_UNREDUCED.contains(dtype)
            ? rejected(Reason.DTYPE, "NCCL does not reduce " + dtype.shortName())
            : Optional.empty();
      }
    };
  }

  /** {@return whether one launch of a variant takes several tensors} */
  boolean takesSeveral(Variant variant) {
    return variant != Variant.NCCL_SYMM || target.nccl() >= NCCL_SYMM_GROUP;
  }

  private static Optional<Rejection> floatsOnly(DType dtype, ImmutableSet<DType> known) {
    return known.contains(dtype)
        ? Optional.empty()
        : rejected(Reason.DTYPE, "no kernel reduces " + dtype.shortName());
  }

  private static Optional<Rejection> rejected(Reason reason, String detail) {
    return Optional.of(new Rejection(reason, detail));
  }
}
