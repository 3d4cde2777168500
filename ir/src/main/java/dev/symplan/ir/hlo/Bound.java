package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;

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

  /**
   * An array in the host's memory.
   *
   * @param rest what is in it where no part is
   * @param parts the tensors that it consists of; where they meet, the last one counts
   */
  record Hosted(HloShape.Array shape, Splat rest, ImmutableList<Part> parts) implements Bound {

    /**
     * A tensor that is a part of an array.
     *
     * @param start its first index of each dimension
     * @param value a value of the graph, in the host's memory
     */
    record Part(ImmutableLongArray start, Value value) {

      /** {@return the part that begins where its array does} */
      static Part first(Value value) {
        return new Part(ImmutableLongArray.copyOf(new long[value.tensor().rank()]), value);
      }

      ImmutableLongArray sizes() {
        return value.tensor().sizes();
      }

      /** {@return whether the elements of another part are in this one} */
      boolean contains(ImmutableLongArray otherStart, ImmutableLongArray otherSizes) {
        return IntStream.range(0, start.length())
            .allMatch(
                dim ->
                    start.get(dim) <= otherStart.get(dim)
                        && otherStart.get(dim) + otherSizes.get(dim)
                            <= start.get(dim) + sizes().get(dim));
      }

      /** {@return whether any element of another part is in this one} */
      boolean meets(ImmutableLongArray otherStart, ImmutableLongArray otherSizes) {
        return IntStream.range(0, start.length())
            .allMatch(
                dim ->
                    start.get(dim) < otherStart.get(dim) + otherSizes.get(dim)
                        && otherStart.get(dim) < start.get(dim) + sizes().get(dim));
      }
    }

    /** {@return an array that is all of a tensor in the host's memory} */
    static Hosted of(HloShape.Array shape, Value inHost) {
      return new Hosted(
          shape, new Splat(Literals.zero(shape), shape), ImmutableList.of(Part.first(inHost)));
    }

    /** {@return the same array, laid out otherwise} */
    Hosted as(HloShape.Array other) {
      return new Hosted(other, new Splat(rest.number(), other), parts);
    }

    /** {@return the tensor that is all of the array, if there is one} */
    Optional<Value> whole() {
      return parts.size() == 1 && parts.getFirst().sizes().equals(shape.tensor().sizes())
          ? Optional.of(parts.getFirst().value())
          : Optional.empty();
    }
  }

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
