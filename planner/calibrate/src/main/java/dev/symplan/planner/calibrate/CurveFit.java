package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.machine.Target.Knot;
import dev.symplan.planner.machine.Target.Knots;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Draws a curve through measured times: as few straight lines as come near all of them.
 *
 * <p>Points that are far out of line are left out, the others made to rise with the bytes by
 * isotonic regression of their logarithms (pool adjacent violators), as a larger message cannot
 * take less time. Of these, the fewest are kept between which lines of bytes are near enough to all
 * others; of several such choices, the one with the least squared errors.
 */
final class CurveFit {

  /**
   * A measured transfer.
   *
   * @param wire bytes through the busiest link direction
   * @param micros of the whole collective
   */
  record Sample(double wire, double micros) {}

  /** A message that takes so many times as long as a larger one was disturbed. */
  private static final double FALLS = 1.1;

  /** So does one that takes so many times what those beside it say. */
  private static final double SPIKE = 1.5;

  /** How near lines have to come: the same is measured again with no less difference. */
  private static final double TOLERANCE = 0.01;

  private CurveFit() {}

  /**
   * {@return a curve, its times rounded to four digits}
   *
   * @param samples by rising bytes, no two of the same
   * @param fixed microseconds of each sample that are accounted for elsewhere
   * @param rate GB/s to assume where the samples give none
   */
  static Knots fit(ImmutableList<Sample> samples, double fixed, double rate) {
    var kept = fewest(rising(inLine(samples)));
    var first = kept.getFirst();
    var last = kept.getLast();
    double slope = (last.micros() - first.micros()) / (last.wire() - first.wire());
    return new Knots(
        kept.stream()
            .map(s -> new Knot(Math.rint(s.wire()), round(Math.max(0, s.micros() - fixed))))
            .collect(ImmutableList.toImmutableList()),
        slope > 0 ? round(1 / (1000 * slope)) : rate);
  }

  private static List<Sample> inLine(List<Sample> samples) {
    var left = new ArrayList<>(samples);
    while (left.size() > 3) {
      int worst = mostContradicted(left);
      if (worst < 0) {
        worst = highestSpike(left);
      }
      if (worst < 0) {
        break;
      }
      left.remove(worst);
    }
    return left;
  }

  /** {@return which sample falls, or is fallen below, most often; -1 if none is} */
  private static int mostContradicted(List<Sample> samples) {
    var contradictions = new int[samples.size()];
    for (int i = 0; i < samples.size(); i++) {
      for (int j = i + 1; j < samples.size(); j++) {
        if (samples.get(i).micros() > FALLS * samples.get(j).micros()) {
          contradictions[i]++;
          contradictions[j]++;
        }
      }
    }
    int worst = -1;
    for (int i = 0; i < contradictions.length; i++) {
      if (contradictions[i] > (worst < 0 ? 0 : contradictions[worst])) {
        worst = i;
      }
    }
    return worst;
  }

  private static int highestSpike(List<Sample> samples) {
    int worst = -1;
    double most = SPIKE;
    for (int i = 1; i < samples.size(); i++) {
      var sample = samples.get(i);
      var before = samples.get(i - 1);
      double expected =
          i + 1 < samples.size()
              ? between(before, samples.get(i + 1), sample.wire())
              : before.micros() * sample.wire() / before.wire();
      if (sample.micros() > most * expected) {
        most = sample.micros() / expected;
        worst = i;
      }
    }
    return worst;
  }

  private static double between(Sample a, Sample b, double wire) {
    return a.micros() + (b.micros() - a.micros()) * (wire - a.wire()) / (b.wire() - a.wire());
  }

  private static List<Sample> rising(List<Sample> samples) {
    record Pool(double log, int size) {
      Pool with(Pool next) {
        int both = size + next.size;
        return new Pool((log * size + next.log * next.size) / both, both);
      }
    }
    var pools = new ArrayList<Pool>();
    for (var sample : samples) {
      var pool = new Pool(Math.log(sample.micros()), 1);
      while (!pools.isEmpty() && pools.getLast().log() > pool.log()) {
        pool = pools.removeLast().with(pool);
      }
      pools.add(pool);
    }
    var risen = new ArrayList<Sample>();
    for (var pool : pools) {
      for (int i = 0; i < pool.size(); i++) {
        var sample = samples.get(risen.size());
        risen.add(pool.size() == 1 ? sample : new Sample(sample.wire(), Math.exp(pool.log())));
      }
    }
    return risen;
  }

  /** Shortest path from the first sample to the last over the lines that come near enough. */
  private static List<Sample> fewest(List<Sample> samples) {
    int count = samples.size();
    var lines = new int[count];
    var errors = new double[count];
    var from = new int[count];
    Arrays.fill(lines, 1, count, Integer.MAX_VALUE);
    for (int i = 0; i < count - 1; i++) {
      var a = samples.get(i);
      double least = Double.NEGATIVE_INFINITY;
      double most = Double.POSITIVE_INFINITY;
      for (int j = i + 1; j < count && least <= most; j++) {
        var b = samples.get(j);
        double length = b.wire() - a.wire();
        double slope = (b.micros() - a.micros()) / length;
        if (slope >= least && slope <= most) {
          double error = errors[i] + squaredErrors(samples, i, j);
          if (lines[i] + 1 < lines[j] || (lines[i] + 1 == lines[j] && error < errors[j])) {
            lines[j] = lines[i] + 1;
            errors[j] = error;
            from[j] = i;
          }
        }
        least = Math.max(least, (b.micros() * (1 - TOLERANCE) - a.micros()) / length);
        most = Math.min(most, (b.micros() * (1 + TOLERANCE) - a.micros()) / length);
      }
    }
    var kept = new ArrayList<Sample>();
    for (int i = count - 1; i > 0; i = from[i]) {
      kept.add(samples.get(i));
    }
    kept.add(samples.getFirst());
    Collections.reverse(kept);
    return kept;
  }

  private static double squaredErrors(List<Sample> samples, int from, int to) {
    double sum = 0;
    for (var sample : samples.subList(from + 1, to)) {
      double error =
          between(samples.get(from), samples.get(to), sample.wire()) / sample.micros() - 1;
      sum += error * error;
    }
    return sum;
  }

  /** {@return four digits of a number: more than any measurement has} */
  static double round(double value) {
    return new BigDecimal(value).round(new MathContext(4)).doubleValue();
  }
}
