package dev.symplan.planner.plan;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;

/**
 * The decision about rewriting some collectives, or about a tensor that gives up its memory.
 *
 * @param members the collectives of the source, as in the first rank's graph, or the tensor
 * @param pieces how many collectives they became, or how many ops, or copies, give the tensor again
 * @param detail the facts behind the reason, for people
 * @param beforeMicros the predicted time of the members as they were, copies and hidden time
 *     included; 0 if it was not asked
 * @param afterMicros the predicted time of the pieces, made or not; 0 if it was not asked
 */
public record Rewrite(
    Action action,
    ImmutableList<Member> members,
    int pieces,
    Reason reason,
    String detail,
    double beforeMicros,
    double afterMicros) {

  /**
   * A collective of the source, or a tensor.
   *
   * @param name the value that it gives first
   * @param source where it stands, as {@code file:line:column}
   * @param bytes of one rank's operands, on the rank that sends most; of the tensor
   */
  public record Member(String name, String source, long bytes) {}

  /** The action that was taken. */
  public enum Action {
    /** The members became one collective. */
    MERGED,
    /** The last member was not put together with the others. */
    APART,
    /** The member and the product before it were split by rows. */
    CHUNKED,
    /** The member was left in one piece. */
    WHOLE,
    /** The member moves its slices to where copies around it put them, which are gone. */
    FOLDED,
    /** The copies around the member stayed. */
    UNFOLDED,
    /** The member became collectives within NVLink domains and across them. */
    HIERARCHICAL,
    /** The member was left as one collective between all ranks. */
    FLAT,
    /** The member became a reduce_scatter, and ops behind it run on shares of the rows. */
    SEQUENCE_PARALLEL,
    /** The ops behind the member run on all rows on each rank. */
    REPLICATED,
    /** The member's memory ends at the peak, and ops compute it again afterwards. */
    RECOMPUTED,
    /** The member's memory ends at the peak, and a copy comes back from the host's memory. */
    OFFLOADED;

    public String text() {
      return Ascii.toLowerCase(name());
    }
  }

  /** Why. */
  public enum Reason {
    /** It is predicted to be faster. */
    FASTER,
    /** The caller wants it wherever it can be. */
    WANTED,
    /** It is not predicted to be faster. */
    NO_GAIN,
    /** The last member works on what an earlier one gives. */
    DEPENDENT,
    /** A result is read, or an operand rewritten, before all operands are ready. */
    NEEDED_EARLIER,
    /** Tensors would live longer, and the most that is live at once would grow too much. */
    MEMORY,
    /** One collective would be too large, or have too many tensors. */
    SIZE,
    /** The caller forced the variant of one of them by its name. */
    FORCED_VARIANT,
    /** Ranks of another stage of a pipeline take part, which are planned by themselves. */
    OTHER_STAGE,
    /** The plan as a whole would be slower, or much larger. */
    PLAN,
    /** Another group, reduction or element type than those before. */
    OTHER_KIND,
    /** No variant that can run moves slices of several rows. */
    LAYOUT,
    /** A part of its group has other numbers of ranks in NVLink domains. */
    UNEQUAL_DOMAINS,
    /** The ranks of an NVLink domain do not follow each other in its group. */
    RANK_ORDER,
    /** Its slices are not equal, or not contiguous. */
    UNEVEN,
    /** Other ops read whole what would have to be gathered. */
    NEEDED_WHOLE,
    /** Ops behind it read what may differ from rank to rank. */
    MAY_DIFFER,
    /** The plan would take more memory than the caller allows. */
    MEMORY_LIMIT;

    public String text() {
      return Ascii.toLowerCase(name()).replace('_', '-');
    }
  }

  public Rewrite {
    if (members.isEmpty() || pieces < 1) {
      throw new IllegalArgumentException("a rewrite needs collectives before and after");
    }
    if (Double.isNaN(beforeMicros) || Double.isNaN(afterMicros)) {
      throw new IllegalArgumentException("a rewrite without times has zeros");
    }
  }

  /** {@return the decision not to make it after all} */
  public Rewrite undone(Reason why, String facts) {
    var left =
        switch (action) {
          case MERGED, APART -> Action.APART;
          case CHUNKED, WHOLE -> Action.WHOLE;
          case FOLDED, UNFOLDED -> Action.UNFOLDED;
          case HIERARCHICAL, FLAT -> Action.FLAT;
          case SEQUENCE_PARALLEL, REPLICATED -> Action.REPLICATED;
          case RECOMPUTED, OFFLOADED ->
              throw new IllegalStateException("nothing takes it back that memory was short");
        };
    int whole = action == Action.MERGED ? members.size() : 1;
    return new Rewrite(left, members, whole, why, facts, beforeMicros, afterMicros);
  }

  /** {@return whether a tensor gives up its memory at the peak} */
  public boolean freesMemory() {
    return action == Action.RECOMPUTED || action == Action.OFFLOADED;
  }

  /** {@return whether the planned graph differs from the source by it} */
  public boolean made() {
    return switch (action) {
      case MERGED, CHUNKED, FOLDED, HIERARCHICAL, SEQUENCE_PARALLEL, RECOMPUTED, OFFLOADED -> true;
      case APART, WHOLE, UNFOLDED, FLAT, REPLICATED -> false;
    };
  }
}
