package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.Target.Barrier;
import dev.symplan.planner.Target.Protocol;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import java.util.Optional;

/**
 * Fits a floor and one or two lines of bytes to measured times.
 *
 * <p>The sizes are split into a stretch at the floor and a stretch for each line in every way there
 * is. In each stretch, relative errors are minimised by least squares with non-negative parameters,
 * reweighted with Huber's weights so that single outliers do not pull. The split with the lowest
 * Bayesian information criterion wins, so that a further line must earn its parameters.
 */
final class CurveFit {

  /**
   * A measured transfer.
   *
   * @param wire bytes through the busiest link direction
   * @param micros of the whole collective
   */
  record Sample(double wire, double micros) {}

  /** What was found; the times of {@link #fit}'s {@code fixed} are not in it. */
  record Fitted(double floor, ImmutableList<Protocol> protocols) {
    double micros(double wire) {
      double fastest = Double.POSITIVE_INFINITY;
      for (var protocol : protocols) {
        fastest = Math.min(fastest, protocol.latency() + wire / (1000 * protocol.rate()));
      }
      return Math.max(floor, fastest);
    }
  }

  private record Line(double latency, double slope) {}

  private static final int REWEIGHTINGS = 20;

  /** Relative errors beyond this count as outliers when whole curves are compared. */
  private static final double OUTLIER = 0.1;

  /** No measurement repeats better than that, so no fit is better than that either. */
  private static final double REPEATABLE = 0.01;

  /** Splits are tried between so many sizes, so that a fit takes no time however many points. */
  private static final int MAX_CUTS = 40;

  /** µs per byte of 100 TB/s: what is flatter than that has no slope. */
  private static final double LEAST_SLOPE = 1e-8;

  private final Sample[] samples;
  private final double fixed;

  private CurveFit(ImmutableList<Sample> samples, double fixed) {
    this.samples = samples.toArray(Sample[]::new);
    this.fixed = fixed;
  }

  /**
   * {@return the floor and lines, rounded to four digits}
   *
   * @param samples by rising bytes, no two of the same
   * @param fixed microseconds of each sample that are accounted for elsewhere
   * @param rate GB/s to assume where one sample is all there is
   */
  static Fitted fit(ImmutableList<Sample> samples, double fixed, double rate) {
    var fit = new CurveFit(samples, fixed);
    if (samples.size() == 1) {
      var only = samples.getFirst();
      double latency = Math.max(0, only.micros() - fixed - only.wire() / (1000 * rate));
      return new Fitted(0, ImmutableList.of(protocol(new Line(latency, 1 / (1000 * rate)))));
    }
    return fit.best();
  }

  /** {@return the barrier that fits times of two or more world sizes, bytes being ranks less 2} */
  static Barrier straight(ImmutableList<Sample> samples) {
    var line = new CurveFit(samples, 0).line(0, samples.size());
    return new Barrier(round(line.latency()), round(line.slope()));
  }

  private Fitted best() {
    Optional<Fitted> best = Optional.empty();
    double bestScore = Double.POSITIVE_INFINITY;
    int count = samples.length;
    int step = Math.max(1, count / MAX_CUTS);
    for (int lines = 1; lines <= 2; lines++) {
      // A stretch has two sizes at least, the floor's too.
      for (int flat = 0; flat <= count - 2 * lines; flat += flat == 0 ? 2 : step) {
        int last = lines == 1 ? flat + 2 : count - 2;
        for (int cut = flat + 2; cut <= last; cut += step) {
          var fitted = fit(flat, lines == 1 ? count : cut);
          int parameters = 2 * lines + (flat > 0 ? 1 : 0);
          double score = count * Math.log(loss(fitted)) + parameters * Math.log(count);
          if (score < bestScore) {
            bestScore = score;
            best = Optional.of(fitted);
          }
        }
      }
    }
    return best.orElseThrow();
  }

  /** The floor of the samples before {@code flat}, a line up to {@code cut}, another behind. */
  private Fitted fit(int flat, int cut) {
    var protocols = ImmutableList.<Protocol>builder().add(protocol(line(flat, cut)));
    if (cut < samples.length) {
      protocols.add(protocol(line(cut, samples.length)));
    }
    return new Fitted(round(floor(flat)), protocols.build());
  }

  private double floor(int flat) {
    double numerator = 0;
    double denominator = 0;
    for (int i = 0; i < flat; i++) {
      double y = samples[i].micros();
      numerator += (y - fixed) / (y * y);
      denominator += 1 / (y * y);
    }
    return flat == 0 ? 0 : Math.max(0, numerator / denominator);
  }

  private Line line(int from, int to) {
    var weights = new double[to - from];
    Arrays.fill(weights, 1);
    var line = weighted(from, weights);
    for (int round = 0; round < REWEIGHTINGS; round++) {
      var errors = new double[weights.length];
      for (int i = 0; i < errors.length; i++) {
        var sample = samples[from + i];
        double predicted = fixed + line.latency() + line.slope() * sample.wire();
        errors[i] = Math.abs(predicted / sample.micros() - 1);
      }
      var sorted = errors.clone();
      Arrays.sort(sorted);
      double usual = Math.max(REPEATABLE, 1.5 * sorted[sorted.length / 2]);
      for (int i = 0; i < errors.length; i++) {
        weights[i] = Math.min(1, usual / errors[i]);
      }
      line = weighted(from, weights);
    }
    return line;
  }

  /** Weighted least squares on relative errors; of two unknowns, so that bounds are simple. */
  private Line weighted(int from, double[] weights) {
    double one = 0;
    double x = 0;
    double xx = 0;
    double z = 0;
    double xz = 0;
    for (int i = 0; i < weights.length; i++) {
      var sample = samples[from + i];
      double w = weights[i] / (sample.micros() * sample.micros());
      double rest = sample.micros() - fixed;
      one += w;
      x += w * sample.wire();
      xx += w * sample.wire() * sample.wire();
      z += w * rest;
      xz += w * sample.wire() * rest;
    }
    double determinant = one * xx - x * x;
    double latency = (xx * z - x * xz) / determinant;
    double slope = (one * xz - x * z) / determinant;
    if (!(latency >= 0)) {
      return new Line(0, Math.max(LEAST_SLOPE, xz / xx));
    }
    if (!(slope >= LEAST_SLOPE)) {
      return new Line(Math.max(0, (z - LEAST_SLOPE * x) / one), LEAST_SLOPE);
    }
    return new Line(latency, slope);
  }

  /** Huber's loss of the relative errors, on average. */
  private double loss(Fitted fitted) {
    double sum = 0;
    for (var sample : samples) {
      double error = Math.abs((fixed + fitted.micros(sample.wire())) / sample.micros() - 1);
      sum += error <= OUTLIER ? error * error : OUTLIER * (2 * error - OUTLIER);
    }
    return sum / samples.length + REPEATABLE * REPEATABLE;
  }

  private static Protocol protocol(Line line) {
    return new Protocol(round(line.latency()), round(1 / (1000 * line.slope())));
  }

  /** {@return four digits of a number: more than any measurement has} */
  static double round(double value) {
    return new BigDecimal(value).round(new MathContext(4)).doubleValue();
  }
}
