package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.Optional;

/**
 * The needs of NCCL for windows of memory between NVLink domains. By its release notes and sources:
 * its symmetric kernels gather between domains with multicast within each, and scatter without; its
 * copy engine collectives gather and exchange. There is none that reduces to all.
 *
 * @param nccl the first version that does
 * @param multicast whether it replicates by NVLink multicast within each domain
 */
public record OverNetwork(int nccl, boolean multicast) {
  private static final ImmutableTable<Kind, Variant, OverNetwork> ROWS =
      ImmutableTable.<Kind, Variant, OverNetwork>builder()
          .put(Kind.ALL_GATHER, Variant.NCCL_SYMM, new OverNetwork(23003, true))
          .put(Kind.REDUCE_SCATTER, Variant.NCCL_SYMM, new OverNetwork(23003, false))
          .put(Kind.ALL_GATHER, Variant.NCCL_CE, new OverNetwork(23007, false))
          .put(Kind.ALL_TO_ALL, Variant.NCCL_CE, new OverNetwork(23007, false))
          .buildOrThrow();

  /** {@return the needs of a variant; empty if it never runs between domains by windows} */
  public static Optional<OverNetwork> of(Kind kind, Variant variant) {
    return Optional.ofNullable(ROWS.get(kind, variant));
  }

  /**
   * {@return whether a target offers that}
   *
   * @param multicastOn whether NVLink multicast may be used where the target has it
   */
  public boolean isMet(Target target, boolean multicastOn) {
    return target.network().windows()
        && target.nccl() >= nccl
        && (!multicast || (multicastOn && target.multicast()));
  }

  /** {@return the needs of it, in words} */
  String words() {
    return "windows between them need NCCL %s, %sand \"windows\" in the target's network"
        .formatted(
            Target.shortNcclVersion(nccl), multicast ? "NVLink multicast (--multicast=on), " : "");
  }
}
