package dev.symplan.planner.pack;

import java.util.OptionalLong;
import java.util.function.BooleanSupplier;

/**
 * The limits of the packer.
 *
 * @param capacity bytes that are enough: a packing within it is not improved further, and if none
 *     is possible, nothing is searched. If absent, the packer aims for the lower bound
 * @param searchSteps how many states exact search may look at after the greedy methods, in all;
 *     some microseconds each, and {@link Ejection} counts moves as so many states as take as long.
 *     A count, not a time, so that the answer is the same on every machine
 * @param greedyItems after so many items have been packed greedily, counted as often as they were,
 *     no further greedy method is tried: one gains little for a large graph, and takes long
 * @param stop asked again and again during exact search, which ends where it says so; plans have
 *     none that ever does, as they must be the same on every machine
 */
public record PackOptions(
    OptionalLong capacity, long searchSteps, long greedyItems, BooleanSupplier stop) {
  private static final BooleanSupplier NEVER = () -> false;

  /** For plans: the greedy methods, and a search of well under a second. */
  public static final PackOptions DEFAULT =
      new PackOptions(OptionalLong.empty(), 100_000, 500_000, NEVER);

  /** For benchmarks: a search of some minutes, where it finds nothing. */
  public static final PackOptions THOROUGH = DEFAULT.withSearchSteps(50_000_000);

  public PackOptions {
    if (capacity.isPresent() && capacity.getAsLong() < 0) {
      throw new IllegalArgumentException("capacity " + capacity.getAsLong());
    }
    if (searchSteps < 0) {
      throw new IllegalArgumentException(searchSteps + " search steps");
    }
    if (greedyItems < 0) {
      throw new IllegalArgumentException(greedyItems + " items");
    }
  }

  /** {@return these options with a number of bytes that is good enough} */
  public PackOptions withCapacity(long bytes) {
    return new PackOptions(OptionalLong.of(bytes), searchSteps, greedyItems, stop);
  }

  /** {@return these options with a limit for exact search, in states} */
  public PackOptions withSearchSteps(long steps) {
    return new PackOptions(capacity, steps, greedyItems, stop);
  }

  /** {@return these options with a limit for greedy packing, in items} */
  public PackOptions withGreedyItems(long items) {
    return new PackOptions(capacity, searchSteps, items, stop);
  }

  /** {@return these options with something that ends exact search} */
  public PackOptions withStop(BooleanSupplier when) {
    return new PackOptions(capacity, searchSteps, greedyItems, when);
  }

  /** {@return how many states may be looked at where the height cannot be below a bound} */
  long searchSteps(long lowerBound) {
    return capacity.isPresent() && capacity.getAsLong() < lowerBound ? 0 : searchSteps;
  }

  /** {@return the height at which to stop} */
  long target(long lowerBound) {
    return Math.max(lowerBound, capacity.orElse(0));
  }
}
