package dev.symplan.ir.hlo;

import dev.symplan.ir.DType;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * The orders by which sorts, and reductions with places, compare. Computations are carried out for
 * all pairs of numbers that differ in what comparisons can see: sign, zero, infinity, NaN.
 */
final class Orders {
  private static final float[] FLOATS = {
    Float.NEGATIVE_INFINITY,
    -Float.MAX_VALUE,
    -2.5f,
    -1,
    -Float.MIN_VALUE,
    0,
    Float.MIN_VALUE,
    1,
    1.5f,
    2,
    1e20f,
    Float.MAX_VALUE,
    Float.POSITIVE_INFINITY,
    Float.NaN
  };

  private static final long[] INTEGERS = {
    Integer.MIN_VALUE, -1000, -2, -1, 0, 1, 2, 7, 1 << 20, Integer.MAX_VALUE
  };

  private Orders() {}

  /**
   * The order of a sort.
   *
   * @param bySecond whether elements that are equal are ordered by the second array, ascending
   */
  record Order(boolean descending, boolean bySecond) {}

  private static Optional<long[]> samples(DType dtype) {
    return switch (dtype) {
      case F32 ->
          Optional.of(
              IntStream.range(0, FLOATS.length)
                  .mapToLong(i -> ScalarProgram.bits(FLOATS[i]))
                  .toArray());
      case I32 -> Optional.of(INTEGERS.clone());
      default -> Optional.empty();
    };
  }

  /**
   * {@return the order of a sort by the first array; empty if it is another one} Samples are in
   * ascending order, NaN at the end.
   *
   * @param arrays how many arrays are sorted together
   */
  static Optional<Order> of(HloComputation computation, DType dtype, int arrays) {
    var samples = samples(dtype);
    if (samples.isEmpty() || computation.parameters().size() != 2 * arrays) {
      return Optional.empty();
    }
    var program = new ScalarProgram(computation);
    for (boolean descending : new boolean[] {false, true}) {
      for (boolean bySecond : new boolean[] {false, true}) {
        var order = new Order(descending, bySecond);
        if (isOrder(order, program, samples.get(), arrays)) {
          return Optional.of(order);
        }
      }
    }
    return Optional.empty();
  }

  private static boolean isOrder(Order order, ScalarProgram program, long[] samples, int arrays) {
    for (int i = 0; i < samples.length; i++) {
      for (int j = 0; j < samples.length; j++) {
        for (long others : new long[] {0, 1}) {
          boolean before = order.descending() ? i > j : i < j;
          boolean wanted = before || order.bySecond() && i == j && arrays > 1 && others == 0;
          var arguments =
              LongStream.concat(
                      LongStream.of(samples[i], samples[j]),
                      LongStream.iterate(others, other -> 1 - other).limit(2L * arrays - 2))
                  .toArray();
          if (program.run(arguments).filter(given -> given[0] == (wanted ? 1 : 0)).isEmpty()) {
            return false;
          }
        }
      }
    }
    return true;
  }

  /**
   * {@return whether a reduction of numbers with their places gives the largest number and its
   * first place, or the smallest; empty if it gives anything else} NaN counts as both.
   */
  static Optional<Boolean> largest(HloComputation computation, DType dtype) {
    var samples = samples(dtype);
    if (samples.isEmpty() || computation.parameters().size() != 4) {
      return Optional.empty();
    }
    int nan = dtype == DType.F32 ? samples.get().length - 1 : -1;
    var program = new ScalarProgram(computation);
    for (boolean largest : new boolean[] {true, false}) {
      boolean all = true;
      for (int i = 0; i < samples.get().length && all; i++) {
        for (int j = 0; j < samples.get().length && all; j++) {
          if (i == nan && j == nan) {
            // Of several, any may be given.
            continue;
          }
          for (long[] places : new long[][] {{0, 1}, {1, 0}, {5, 1000}, {1000, 5}}) {
            boolean same = i == j;
            boolean left = same ? places[0] < places[1] : i == nan || j != nan && largest == i > j;
            long value = samples.get()[left ? i : j];
            long place = places[left ? 0 : 1];
            all &=
                program
                    .run(samples.get()[i], places[0], samples.get()[j], places[1])
                    .filter(given -> given.length == 2 && given[0] == value && given[1] == place)
                    .isPresent();
          }
        }
      }
      if (all) {
        return Optional.of(largest);
      }
    }
    return Optional.empty();
  }
}
