package dev.symplan.planner.verify;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;

/**
 * A rule that a plan breaks.
 *
 * @param rank the first rank where it does; -1 if it concerns the plan as a whole
 * @param step the step of that rank; -1 if no step does it
 * @param trace the steps that lead there, for a person to follow
 */
public record Violation(
    Rule rule, int rank, int step, String message, ImmutableList<String> trace) {

  /** The rules that every plan must satisfy. */
  public enum Rule {
    /** Indices, sizes and counts of the plan fit each other. */
    STRUCTURE,
    /** Every op runs once, after its operands are written. */
    ORDER,
    /** Values lie inside their buffers, buffers inside their arenas, views where their op says. */
    PLACEMENT,
    /** Nothing is read that something else has overwritten. */
    OVERWRITTEN,
    /** Nothing touches what an unfinished collective reads or writes, on this rank or by a peer. */
    RACE,
    /** Each graph of a program can run by itself. */
    BORDER,
    /** What runs only once gives what each run needs, and stays. */
    SETUP,
    /** The live ranges that the plan states are the real ones. */
    LIFETIME,
    /** Every collective's variant is possible, and its tensors are where it needs them. */
    REALIZATION,
    /**
     * Ranks have the same collectives in the same order, and symmetric buffers at the same offset.
     */
    AGREEMENT,
    /** The digest is that of the plan. */
    DIGEST;

    /** {@return the name in messages, for example {@code race}} */
    public String text() {
      return Ascii.toLowerCase(name());
    }
  }

  @Override
  public String toString() {
    var location = rank < 0 ? "" : " (rank " + rank + (step < 0 ? "" : ", step " + step) + ")";
    return rule.text() + location + ": " + message;
  }
}
