package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Eligibility.Rejection;
import dev.symplan.planner.machine.Eligibility.Request;
import dev.symplan.planner.machine.Verdict.Reason;
import java.util.Optional;
import java.util.stream.Collectors;

/** What must hold before a variant can carry out a collective between ranks of one host. */
public sealed interface Requirement {

  /**
   * A variant for a c.collective().
   *
   * @param ranks the size of the group
   * @param multicast whether NVLink multicast may be used where the target has it
   */
  record Candidate(
      VariantSpec spec, Request collective, int ranks, Target target, boolean multicast) {}

  /** {@return why a variant does not meet it; empty if it does} */
  Optional<Rejection> unmet(Candidate c);

  /** {@return the requirement for people; empty where {@link VariantSpec} has it as a list} */
  default String words() {
    return "";
  }

  /** {@return whether it lets one launch take several tensors} */
  default boolean allowsSeveral(Target target) {
    return true;
  }

  private static Optional<Rejection> rejectedUnless(boolean met, Reason reason, String detail) {
    return met ? Optional.empty() : Optional.of(new Rejection(reason, detail));
  }

  /** The target has NVLink multicast, and the caller lets plans use it. */
  record Multicast() implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      return c.target().multicast()
          ? rejectedUnless(
              c.multicast(), Reason.MULTICAST_OFF, "multicast is off; add --multicast=on")
          : rejectedUnless(false, Reason.NO_MULTICAST, "the target has no multicast");
    }

    @Override
    public String words() {
      return "multicast, enabled (--multicast=on)";
    }
  }

  /** The target's copy engines reach peers. */
  record CopyEngines() implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      return rejectedUnless(
          c.target().copyEngines(),
          Reason.NO_COPY_ENGINE,
          "the target's copy engines cannot access peers");
    }

    @Override
    public String words() {
      return "copy engines that can access peers";
    }
  }

  /**
   * The variant's kernel supports the reduction.
   *
   * @param detail a format that takes another reduction
   */
  record Reductions(ImmutableSet<ReduceOp> supported, String detail) implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      return rejectedUnless(
          c.collective().reduceOp().filter(supported::contains).isPresent(),
          Reason.REDUCTION,
          detail.formatted(ReduceOp.text(c.collective().reduceOp())));
    }
  }

  /**
   * The variant's kernel supports the element type.
   *
   * @param detail a format that takes another type
   */
  record Types(ImmutableSet<DType> supported, String detail) implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      var dtype = c.collective().dtype();
      return rejectedUnless(
          supported.contains(dtype), Reason.DTYPE, detail.formatted(dtype.shortName()));
    }
  }

  /**
   * The target's NCCL is not older than some version.
   *
   * @param version as {@code major * 10000 + minor * 100 + patch}
   * @param what needs it; a format that takes the element type
   * @param reductions those that need it; empty for all collectives
   * @param dtypes the element types that need it; empty for all
   */
  record Nccl(
      int version, String what, ImmutableSet<ReduceOp> reductions, ImmutableSet<DType> dtypes)
      implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      boolean concerned =
          (reductions.isEmpty()
                  || c.collective().reduceOp().filter(reductions::contains).isPresent())
              && (dtypes.isEmpty() || dtypes.contains(c.collective().dtype()));
      return rejectedUnless(
          !concerned || c.target().nccl() >= version,
          Reason.LIBRARY,
          "%s needs NCCL %s, %s has %s"
              .formatted(
                  what.formatted(c.collective().dtype().shortName()),
                  Target.shortNcclVersion(version),
                  c.target().name(),
                  c.target().ncclVersion()));
    }

    @Override
    public String words() {
      var of = ImmutableSet.<String>builder();
      reductions.forEach(op -> of.add(op.text()));
      dtypes.forEach(dtype -> of.add(dtype.shortName()));
      var concerned = of.build().stream().collect(Collectors.joining(", "));
      return "NCCL "
          + Target.shortNcclVersion(version)
          + (concerned.isEmpty() ? "" : " for " + concerned);
    }
  }

  /**
   * NCCL's symmetric kernels take several tensors in one group.
   *
   * @param grouped the version that takes them at all
   * @param ordered the version whose kernels wait for the one before them in a captured graph
   */
  record SeveralInGroup(int grouped, int ordered) implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      int tensors = c.collective().operands().size();
      if (tensors == 1 || allowsSeveral(c.target())) {
        return Optional.empty();
      }
      return c.target().nccl() < grouped
          ? rejectedUnless(
              false,
              Reason.LIBRARY_GROUP,
              "%s collectives in one group; NCCL %s allows one, %s more"
                  .formatted(tensors, c.target().ncclVersion(), Target.shortNcclVersion(grouped)))
          : rejectedUnless(
              false,
              Reason.LIBRARY_RACE,
              "%s collectives in one captured group race in NCCL %s; %s orders them"
                  .formatted(tensors, c.target().ncclVersion(), Target.shortNcclVersion(ordered)));
    }

    @Override
    public boolean allowsSeveral(Target target) {
      return target.nccl() >= ordered;
    }

    @Override
    public String words() {
      return "NCCL %s for several tensors in one".formatted(Target.shortNcclVersion(ordered));
    }
  }

  /** One tensor, not several. */
  record OneTensor() implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      int tensors = c.collective().operands().size();
      return rejectedUnless(
          tensors == 1,
          Reason.LIBRARY_GROUP,
          "%s collectives in one group; NCCL's copy engines allow one".formatted(tensors));
    }

    @Override
    public boolean allowsSeveral(Target target) {
      return false;
    }

    @Override
    public String words() {
      return "one tensor";
    }
  }

  /** Each rank sends, and gets, as many rows from all. */
  record EqualRows() implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      return rejectedUnless(
          c.collective().hasEqualRows(),
          Reason.ROWS,
          "the ranks send unequal parts; NCCL's copy engines need equal ones");
    }

    @Override
    public String words() {
      return "parts of equal size";
    }
  }

  /**
   * What NCCL's symmetric kernels can count.
   *
   * @param gibibytes more than all ranks hold together
   */
  record LessThan(int gibibytes) implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      double all = (double) c.collective().bytes() * c.ranks();
      return rejectedUnless(
          all < (double) gibibytes * (1L << 30),
          Reason.SIZE,
          "%s on all ranks together; NCCL's symmetric kernels are limited to %d GiB"
              .formatted(Units.bytes((long) all), gibibytes));
    }

    @Override
    public String words() {
      return "less than %d GiB on all ranks together".formatted(gibibytes);
    }
  }

  /** The workspace is not larger than the target allows. */
  record WorkspaceFits() implements Requirement {
    @Override
    public Optional<Rejection> unmet(Candidate c) {
      long bytes = Eligibility.workspaceBytes(c.collective(), c.spec(), c.ranks());
      return rejectedUnless(
          bytes <= c.target().workspaceBytes(),
          Reason.WORKSPACE,
          "a workspace of %s; %s allows %s"
              .formatted(
                  Units.bytes(bytes), c.target().name(), Units.bytes(c.target().workspaceBytes())));
    }

    @Override
    public String words() {
      return "a workspace of at most the target's workspace_bytes";
    }
  }
}
