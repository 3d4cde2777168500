package dev.symplan.planner.plan;

import com.google.common.base.Ascii;

/**
 * The decision about where a collective finds one of its tensors.
 *
 * @param result whether it is a result rather than an operand
 * @param value the value that the collective reads or writes
 * @param cause the op or value that decided it: the producer, the graph input, the output
 * @param bytes the size of the tensor
 */
public record ArgDecision(
    boolean result,
    String value,
    Realization realization,
    Reason reason,
    String cause,
    long bytes) {

  /** How the tensor got into symmetric memory, if at all. */
  public enum Realization {
    /** The tensor lives in symmetric memory: no copy. */
    ZERO_COPY,
    /** It is copied into or out of symmetric memory. */
    STAGED,
    /** The variant does not need it there. */
    NOT_NEEDED;

    public String text() {
      return Ascii.toLowerCase(name()).replace('_', '-');
    }
  }

  /** Why. */
  public enum Reason {
    /** The op that computes it writes it there. */
    PRODUCER_WRITES,
    /** A graph input that the caller fills in the arena. */
    PLANNED_INPUT,
    /** It is the result of another collective, in memory already. */
    COLLECTIVE_RESULT,
    /** The collective itself writes its result there. */
    RESULT_WRITES,
    /** The result takes the operand's memory. */
    IN_PLACE,
    /** The collective writes its rows where a later op joins them with those of other tensors. */
    WRITES_ROWS,
    /** A graph input in memory of the caller's must be copied in. */
    EXTERNAL_INPUT,
    /** A graph output in memory of the caller's must be copied out. */
    EXTERNAL_OUTPUT,
    /** Its elements do not lie as the collective moves them. */
    NOT_CONTIGUOUS,
    /** Its offset is not aligned. */
    NOT_ALIGNED,
    /** An op that may do anything may have moved the tensor to other memory. */
    MAY_HAVE_MOVED,
    /** The ranks' graphs share or slice its storage in different ways. */
    RANKS_DIFFER,
    /** The chosen variant reads its rows where they are, past what lies between them. */
    READS_ROWS,
    /** The chosen variant reads it where it is. */
    VARIANT_READS_ANYWHERE
  }
}
