package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A condition for a variant to run a collective between ranks of one NVLink domain. {@link
 * Eligibility} checks it.
 *
 * <p>Versions of NCCL are {@code major * 10000 + minor * 100 + patch}.
 */
public sealed interface Requirement {

  /** The target has NVLink multicast, and the caller lets plans use it. */
  record Multicast() implements Requirement {}

  /** The target's copy engines reach peers. */
  record CopyEngines() implements Requirement {}

  /**
   * The variant's kernel supports the reduction.
   *
   * @param detail a format that takes another reduction
   */
  record Reductions(ImmutableSet<ReduceOp> supported, String detail) implements Requirement {}

  /**
   * The variant's kernel supports the element type.
   *
   * @param detail a format that takes another type
   */
  record Types(ImmutableSet<DType> supported, String detail) implements Requirement {}

  /**
   * The target's NCCL is not older than a version.
   *
   * @param what needs it; a format that takes the element type
   * @param reductions those that need it; empty for all collectives
   * @param dtypes the element types that need it; empty for all
   */
  record Nccl(
      int version, String what, ImmutableSet<ReduceOp> reductions, ImmutableSet<DType> dtypes)
      implements Requirement {}

  /**
   * NCCL's symmetric kernels take several tensors in one group.
   *
   * @param grouped the version that takes them at all
   * @param ordered the version whose kernels wait for the one before them in a captured graph
   */
  record SeveralTensors(int grouped, int ordered) implements Requirement {}

  /** One tensor, not several. */
  record OneTensor() implements Requirement {}

  /** Each rank sends, and gets, as many rows from all. */
  record EqualRows() implements Requirement {}

  /** Each rank's slice of each operand has a multiple of {@link Alignment#VECTOR} bytes. */
  record AlignedSlices() implements Requirement {}

  /** Each slice that a rank sends or gets is contiguous. */
  record Runs() implements Requirement {}

  /** A rank gets tensors of the element type of those that it sends. */
  record OneType() implements Requirement {}

  /** All ranks together hold less than this: what NCCL's symmetric kernels can count. */
  record LessThan(int gibibytes) implements Requirement {}

  /** The workspace is not larger than the target allows. */
  record WorkspaceFits() implements Requirement {}

  /** {@return the requirement for people; empty if {@link VariantSpec} has it as a list} */
  default String words() {
    return switch (this) {
      case Multicast _ -> "multicast, enabled (--multicast=on)";
      case CopyEngines _ -> "copy engines that can access peers";
      case Reductions _, Types _ -> "";
      case Nccl(int version, _, var reductions, var dtypes) -> {
        var what =
            Stream.concat(
                    reductions.stream().map(ReduceOp::text), dtypes.stream().map(DType::shortName))
                .collect(Collectors.joining(", "));
        yield "NCCL " + Target.shortNcclVersion(version) + (what.isEmpty() ? "" : " for " + what);
      }
      case SeveralTensors(_, int ordered) ->
          "NCCL %s for several tensors in one".formatted(Target.shortNcclVersion(ordered));
      case OneTensor _ -> "one tensor";
      case EqualRows _ -> "parts of equal size";
      case AlignedSlices _ -> "slices of a multiple of %s bytes".formatted(Alignment.VECTOR);
      case Runs _ -> "contiguous slices";
      case OneType _ -> "a result of the operand's type";
      case LessThan(int gibibytes) -> "less than %s GiB on all ranks together".formatted(gibibytes);
      case WorkspaceFits _ -> "a workspace of at most the target's workspace_bytes";
    };
  }
}
