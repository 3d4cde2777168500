package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;

/** What an instruction became. */
sealed interface Bound {

  /** A value of the graph. */
  record Tensor(Value value) implements Bound {}

  /** An array whose elements are all one number, which no op has made yet. */
  record Splat(Arg.Literal number, HloShape.Array shape) implements Bound {}

  /** A tuple, which graphs do not have: its parts. */
  record Tuple(ImmutableList<Bound> parts) implements Bound {}

  /** A collective that was started; the results come when it is done. */
  record Pending(ImmutableList<Started> results) implements Bound {}

  /** A token. */
  enum Nothing implements Bound {
    NOTHING
  }

  /**
   * A result of a collective that was started.
   *
   * @param physical what the collective gives, its dimensions in the order of the layout
   */
  record Started(Value physical, HloShape.Array shape, String name) {}
}
