package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import java.util.OptionalInt;

/** The result of translating an instruction. */
sealed interface Bound {

  /** A value of the graph. */
  record Tensor(Value value) implements Bound {}

  /** An array whose elements are all one number, which no op has made yet. */
  record Splat(Arg.Literal number, HloShape.Array shape) implements Bound {}

  /**
   * An array whose elements are all one number on each device, which no op has made yet.
   *
   * @param numbers of rank 0, 1, …; not all are the same
   */
  record ByRank(ImmutableList<Arg.Literal> numbers, HloShape.Array shape) implements Bound {
    /** {@return an array of the number of each rank} */
    static Bound of(ImmutableList<Arg.Literal> numbers, HloShape.Array shape) {
      return numbers.stream().distinct().count() == 1
          ? new Splat(numbers.getFirst(), shape)
          : new ByRank(numbers, shape);
    }
  }

  /** An array of a few numbers that the module states, row by row, which no op has made yet. */
  record Table(ImmutableList<Arg.Literal> numbers, HloShape.Array shape) implements Bound {}

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
   * @param physical the result of the collective, its dimensions in the order of the layout
   * @param row which row of that is the result, if not all are
   */
  record Started(Value physical, HloShape.Array shape, String name, OptionalInt row) {
    static Started whole(Value physical, HloShape.Array shape, String name) {
      return new Started(physical, shape, name, OptionalInt.empty());
    }

    /** {@return the result in what the collective has given} */
    Value part(GraphEmitter emitter, Value given) {
      return row.isPresent()
          ? emitter.op(
              name + ".part",
              "aten::select.int",
              new Arg.Ref(given),
              new Arg.Int(0),
              new Arg.Int(row.getAsInt()))
          : given;
    }
  }
}
