package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Verdict.Reason;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Which variants can carry out a collective on a target, whatever it costs.
 *
 * <p>NCCL's limits are those of its symmetric kernels up to 2.30 and of {@code ncclRedOp_t}; those
 * of the own kernels are what the kernels are written for.
 */
public final class Eligibility {
  private static final ImmutableSet<DType> SHORT_FLOATS =
      ImmutableSet.of(DType.F32, DType.BF16, DType.F16);
  private static final ImmutableSet<DType> SHORT_FP8 =
      ImmutableSet.of(DType.F8E4M3FN, DType.F8E5M2);
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

  private static final int NCCL_FP8 = 22400;
  private static final int NCCL_WINDOWS = 22700;
  private static final int NCCL_SYMM_GROUPS = 22800;
  private static final int NCCL_COPY_ENGINES = 22800;
  private static final int NCCL_SYMM_AVG = 23000;

  /** Up to here, symmetric kernels do not wait for the kernel before them in a captured graph. */
  private static final int NCCL_SYMM_ORDERED = 23007;

  /** What NCCL's symmetric kernels count: the bytes that all ranks hold together. */
  private static final double NCCL_SYMM_BYTES = 64.0 * (1L << 30);

  /** A rejection, with the facts for people. */
  public record Rejection(Reason reason, String detail) {}

  /**
   * What decides it of a collective.
   *
   * @param reduceOp the reduction; empty where there is none
   * @param operands the tensors that a rank brings
   */
  public record Request(
      Op op, Kind kind, Optional<ReduceOp> reduceOp, ImmutableList<Value> operands) {

    /** Whether it is a custom op with tensors that must be in symmetric memory. */
    private boolean registersMemory() {
      return !op.def().symmMemArgs().isEmpty() || !op.def().symmMemResults().isEmpty();
    }

    private boolean reduces() {
      return reduceOp.isPresent();
    }

    private boolean reducesWith(ReduceOp... ops) {
      return reduceOp.filter(ImmutableList.copyOf(ops)::contains).isPresent();
    }

    private boolean reducesBits() {
      return reduceOp.filter(ReduceOp::isBitwise).isPresent();
    }

    public DType dtype() {
      return operands.getFirst().tensor().dtype();
    }

    /** {@return the bytes of all operands} */
    public long bytes() {
      return operands.stream().mapToLong(value -> value.tensor().bytes()).sum();
    }

    /** Whether each rank sends, and gets, as many rows from all; so where it is no exchange. */
    private boolean hasEqualRows() {
      return kind != Kind.ALL_TO_ALL
          || (areEqual(op.arg("input_split_sizes")) && areEqual(op.arg("output_split_sizes")));
    }

    private static boolean areEqual(Arg rows) {
      return !(rows instanceof Arg.Seq(ImmutableList<Arg> counts))
          || counts.stream().distinct().count() <= 1;
    }
  }

  private final Target target;
  private final boolean multicast;

  /** By the group itself: a job's may be long, and many collectives have the same. */
  private final Map<ProcessGroup, Optional<Rejection>> apart = new IdentityHashMap<>();

  /**
   * @param multicast whether NVLink multicast may be used where the target has it
   */
  public Eligibility(Target target, boolean multicast) {
    this.target = target;
    this.multicast = multicast;
  }

  /**
   * {@return why a variant that exists for the kind cannot be used between the ranks of a group;
   * empty if it can}
   */
  public Optional<Rejection> reject(Request collective, Variant variant, ProcessGroup group) {
    boolean reaches =
        switch (variant) {
          case LOCAL, NCCL -> false;
          case ONE_SHOT,
              ONE_SHOT_PUSH,
              TWO_SHOT,
              TWO_SHOT_PUSH,
              PUSH,
              MULTIMEM,
              COPY_ENGINE,
              NCCL_SYMM,
              NCCL_CE ->
              true;
          case CUSTOM -> collective.registersMemory();
        };
    return (reaches ? apart(group) : Optional.<Rejection>empty())
        .or(() -> reject(collective, variant, group.size()));
  }

  /** {@return whether the ranks of each part of a group reach each other's memory} */
  public boolean isOnOneHost(ProcessGroup group) {
    return apart(group).isEmpty();
  }

  private Optional<Rejection> apart(ProcessGroup group) {
    return apart.computeIfAbsent(group, this::rejectHosts);
  }

  /** All parts of a group run the same variant, so each of them must be on one host. */
  private Optional<Rejection> rejectHosts(ProcessGroup group) {
    for (var part : group.members()) {
      int first = part.get(0);
      var elsewhere =
          part.stream().filter(rank -> target.host(rank) != target.host(first)).findFirst();
      if (elsewhere.isPresent()) {
        return rejected(
            Reason.NO_PEER_ACCESS,
            "ranks %d and %d are on different hosts, as %s has %d GPUs on each"
                .formatted(first, elsewhere.getAsInt(), target.name(), target.gpus()));
      }
    }
    return Optional.empty();
  }

  /**
   * {@return why a variant that exists for the kind cannot be used between so many ranks of one
   * host; empty if it can}
   */
  public Optional<Rejection> reject(Request collective, Variant variant, int ranks) {
    if (variant == Variant.CUSTOM) {
      return Optional.empty();
    }
    if ((ranks == 1) != (variant == Variant.LOCAL)) {
      return rejected(
          Reason.GROUP_SIZE,
          ranks == 1 ? "the group has one rank" : "the group has %s ranks".formatted(ranks));
    }
    boolean reduces = collective.reduces();
    var op = ReduceOp.text(collective.reduceOp());
    var dtype = collective.dtype();
    return switch (variant) {
      case LOCAL, ONE_SHOT, PUSH, CUSTOM -> Optional.empty();
      case ONE_SHOT_PUSH, TWO_SHOT_PUSH -> rejectPush(collective, variant, ranks);
      case TWO_SHOT ->
          collective.reducesWith(ReduceOp.PRODUCT) || collective.reducesBits()
              ? rejected(
                  Reason.REDUCTION, "two-shot kernels support sum, avg, min and max, not " + op)
              : reduces ? floatsOnly(dtype, SHORT_FLOATS) : Optional.empty();
      case MULTIMEM -> {
        if (!target.multicast()) {
          yield rejected(Reason.NO_MULTICAST, "the target has no multicast");
        }
        if (!multicast) {
          yield rejected(Reason.MULTICAST_OFF, "multicast is off; add --multicast=on");
        }
        if (reduces && !collective.reducesWith(ReduceOp.SUM)) {
          yield rejected(Reason.REDUCTION, "the switch supports sum only, not " + op);
        }
        yield reduces ? floatsOnly(dtype, SHORT_FLOATS) : Optional.empty();
      }
      case COPY_ENGINE ->
          target.copyEngines()
              ? Optional.empty()
              : rejected(Reason.NO_COPY_ENGINE, "the target's copy engines cannot access peers");
      case NCCL_SYMM -> rejectSymmetric(collective, ranks);
      case NCCL_CE -> rejectCopyEngines(collective);
      case NCCL -> {
        if (collective.reducesBits()) {
          yield rejected(Reason.REDUCTION, "NCCL does not support " + op);
        }
        if (reduces && SHORT_FP8.contains(dtype) && target.nccl() < NCCL_FP8) {
          yield tooOld(dtype.shortName() + " in reductions", "2.24");
        }
        yield reduces && NCCL_UNREDUCED.contains(dtype)
            ? rejected(Reason.DTYPE, "NCCL does not reduce " + dtype.shortName())
            : Optional.empty();
      }
    };
  }

  private Optional<Rejection> rejectPush(Request collective, Variant variant, int ranks) {
    long bytes = workspaceBytes(collective, variant, ranks);
    return bytes > target.workspaceBytes()
        ? rejected(
            Reason.WORKSPACE,
            "a workspace of %s; %s allows %s"
                .formatted(Units.bytes(bytes), target.name(), Units.bytes(target.workspaceBytes())))
        : Optional.empty();
  }

  /**
   * NCCL falls back to other kernels without a word where these do not apply, so what it takes is
   * told beforehand. Windows begin at multiples of 4096 bytes and have the same size and the same
   * offsets on all ranks, because the whole symmetric arena is one.
   */
  private Optional<Rejection> rejectSymmetric(Request collective, int ranks) {
    boolean reduces = collective.reduces();
    var op = ReduceOp.text(collective.reduceOp());
    if (target.nccl() < NCCL_WINDOWS) {
      return tooOld("a symmetric kernel", "2.27");
    }
    if (collective.reducesWith(ReduceOp.AVG) && target.nccl() < NCCL_SYMM_AVG) {
      return tooOld("avg in symmetric kernels", "2.30");
    }
    if (reduces && !collective.reducesWith(ReduceOp.SUM, ReduceOp.AVG)) {
      return rejected(Reason.REDUCTION, "NCCL's symmetric kernels do not support " + op);
    }
    if (reduces
        && !SHORT_FLOATS.contains(collective.dtype())
        && !SHORT_FP8.contains(collective.dtype())) {
      return rejected(
          Reason.DTYPE,
          "NCCL's symmetric kernels add floats of at most 32 bits, not "
              + collective.dtype().shortName());
    }
    double all = (double) collective.bytes() * ranks;
    if (all >= NCCL_SYMM_BYTES) {
      return rejected(
          Reason.SIZE,
          "%s on all ranks together; NCCL's symmetric kernels are limited to 64 GiB"
              .formatted(Units.bytes((long) all)));
    }
    int grouped = collective.operands().size();
    if (grouped > 1 && target.nccl() < NCCL_SYMM_GROUPS) {
      return rejected(
          Reason.LIBRARY_GROUP,
          "%s collectives in one group; NCCL %s allows one, 2.28 more"
              .formatted(grouped, target.ncclVersion()));
    }
    if (grouped > 1 && target.nccl() < NCCL_SYMM_ORDERED) {
      return rejected(
          Reason.LIBRARY_RACE,
          "%s collectives in one captured group race in NCCL %s; 2.30.7 orders them"
              .formatted(grouped, target.ncclVersion()));
    }
    return Optional.empty();
  }

  private Optional<Rejection> rejectCopyEngines(Request collective) {
    if (!target.copyEngines()) {
      return rejected(Reason.NO_COPY_ENGINE, "the target's copy engines cannot access peers");
    }
    if (target.nccl() < NCCL_COPY_ENGINES) {
      return tooOld("a copy engine collective", "2.28");
    }
    int grouped = collective.operands().size();
    if (grouped > 1) {
      return rejected(
          Reason.LIBRARY_GROUP,
          "%s collectives in one group; NCCL's copy engines allow one".formatted(grouped));
    }
    return collective.hasEqualRows()
        ? Optional.empty()
        : rejected(
            Reason.ROWS, "the ranks send unequal parts; NCCL's copy engines need equal ones");
  }

  private Optional<Rejection> tooOld(String what, String needed) {
    return rejected(
        Reason.LIBRARY,
        "%s needs NCCL %s, %s has %s".formatted(what, needed, target.name(), target.ncclVersion()));
  }

  /**
   * {@return the bytes of the {@link Workspace} that a collective takes: several tensors go through
   * it one after the other; 0 where the variant takes none}
   */
  public static long workspaceBytes(Request collective, Variant variant, int ranks) {
    long most = 0;
    for (var operand : collective.operands()) {
      var type = operand.tensor();
      most =
          Math.max(
              most,
              Workspace.of(
                      variant,
                      collective.kind(),
                      collective.reduceOp(),
                      type.dtype(),
                      type.bytes(),
                      ranks)
                  .map(Workspace::bytes)
                  .orElse(0L));
    }
    return most;
  }

  /** {@return whether one launch of a variant takes several tensors} */
  public boolean takesSeveral(Variant variant) {
    return variant == Variant.NCCL_SYMM
        ? target.nccl() >= NCCL_SYMM_ORDERED
        : variant != Variant.NCCL_CE;
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
