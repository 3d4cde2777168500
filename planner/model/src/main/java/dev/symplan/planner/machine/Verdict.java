package dev.symplan.planner.machine;

/**
 * The planner's verdict on one variant for one collective.
 *
 * @param reason why it was rejected, or that it was not the cheapest, or that it was chosen
 * @param detail the numbers behind the reason, for people
 * @param transferMicros the predicted time of the collective; NaN if the variant is not eligible
 * @param stagingMicros the predicted time of the copies it would need
 */
public record Verdict(
    Variant variant, Reason reason, String detail, double transferMicros, double stagingMicros) {

  /** The reason why a variant was chosen or not. */
  public enum Reason {
    CHOSEN(true),
    /** Chosen because the caller said so. */
    FORCED(true),
    /** Eligible, but another is predicted to be faster. */
    SLOWER(true),
    /** Eligible, but the caller forced another. */
    NOT_FORCED(true),
    /** Eligible, but ranks may get different bits, so that the caller or the graph must name it. */
    NOT_NAMED(true),
    /**
     * Eligible and faster, but not by as much as a plan must gain for the memory of a workspace.
     */
    NOT_WORTH_MEMORY(true),
    /** The group has one rank, or this variant needs exactly one. */
    GROUP_SIZE(false),
    /** The target has no NVLink multicast. */
    NO_MULTICAST(false),
    /** The target has NVLink multicast, but the caller did not switch it on. */
    MULTICAST_OFF(false),
    /** The target has no copy engine that reaches peers. */
    NO_COPY_ENGINE(false),
    /** The plan's backend does not support the variant. */
    NOT_IN_BACKEND(false),
    /**
     * Ranks of the group are in different NVLink domains, and cannot access each other's memory.
     */
    NO_PEER_ACCESS(false),
    /**
     * Ranks of the group are in different stages of a pipeline, which have other collectives, and
     * other tensors in symmetric memory.
     */
    OTHER_STAGE(false),
    /** The op is registered for symmetric memory, which the variant does not use. */
    NOT_SYMMETRIC(false),
    /** The variant does not know this reduction. */
    REDUCTION(false),
    /** The variant does not know this element type. */
    DTYPE(false),
    /** The collective moves more bytes than the variant's kernel can count. */
    SIZE(false),
    /** The ranks send unequal parts, which the variant does not know. */
    ROWS(false),
    /** The ranks' slices do not begin where the variant's kernel needs them to. */
    ALIGNMENT(false),
    /**
     * Each rank's slice consists of separate rows, but the variant moves only contiguous slices.
     */
    LAYOUT(false),
    /** The workspace that it would need is larger than the target allows. */
    WORKSPACE(false),
    /** The library of the target is too old to have it at all. */
    LIBRARY(false),
    /** The library of the target takes fewer collectives in one group. */
    LIBRARY_GROUP(false),
    /** The library of the target is known to race there, without an error. */
    LIBRARY_RACE(false);

    private final boolean eligible;

    Reason(boolean eligible) {
      this.eligible = eligible;
    }

    /** {@return whether the variant can run, chosen or not} */
    public boolean eligible() {
      return eligible;
    }
  }

  /** {@return the predicted total} */
  public double totalMicros() {
    return transferMicros + stagingMicros;
  }

  /** {@return whether the collective runs as this variant} */
  public boolean chosen() {
    return reason == Reason.CHOSEN || reason == Reason.FORCED;
  }
}
