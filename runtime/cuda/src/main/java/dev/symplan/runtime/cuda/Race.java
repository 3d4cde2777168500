package dev.symplan.runtime.cuda;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToDoubleFunction;
import java.util.function.LongSupplier;

/**
 * Finds the fastest of several by measuring one after the other, several times. What was clearly
 * slower in the first round is not measured again.
 */
final class Race {

  /** The first round may be slowed down by what happens once. */
  private static final double CLEARLY_SLOWER = 1.3;

  private static final int ROUNDS = 6;

  /** Less than this between two is chance. */
  private static final double SAME = 1.01;

  private Race() {}

  /**
   * {@return the number of the fastest; of several that are about as fast, the first}
   *
   * @param count at least 1
   * @param measure gives the time of one, in any unit
   * @param nanoTime as {@link System#nanoTime}
   * @param most after which no other measurement begins, if there was one at least: those that were
   *     not reached cannot win, and a round that was not completed does not count
   */
  static int winner(int count, IntToDoubleFunction measure, LongSupplier nanoTime, Duration most) {
    long begin = nanoTime.getAsLong();
    var best = new ArrayList<Double>();
    do {
      best.add(measure.applyAsDouble(best.size()));
    } while (best.size() < count && nanoTime.getAsLong() - begin < most.toNanos());
    double limit = CLEARLY_SLOWER * least(best);
    var running = new ArrayList<Integer>();
    for (int i = 0; i < best.size(); i++) {
      if (best.get(i) <= limit) {
        running.add(i);
      }
    }
    for (int round = 1; round < ROUNDS && running.size() > 1; round++) {
      var times = new ArrayList<Double>();
      for (int i : running) {
        if (nanoTime.getAsLong() - begin >= most.toNanos()) {
          return first(running, best);
        }
        times.add(measure.applyAsDouble(i));
      }
      for (int i = 0; i < times.size(); i++) {
        best.set(running.get(i), Math.min(best.get(running.get(i)), times.get(i)));
      }
    }
    return first(running, best);
  }

  private static double least(List<Double> times) {
    return times.stream().mapToDouble(time -> time).min().orElseThrow();
  }

  private static int first(List<Integer> running, List<Double> best) {
    double limit = SAME * least(best);
    return running.stream().filter(i -> best.get(i) <= limit).findFirst().orElseThrow();
  }
}
