package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.calibrate.CurveFit.Sample;
import dev.symplan.planner.machine.Target.Barrier;
import java.util.Arrays;

/**
 * One straight line through a few measured times: least squares of relative errors with
 * non-negative parameters, reweighted with Huber's weights so that single outliers do not pull.
 */
final class LineFit {
  private static final int REWEIGHTINGS = 20;

  /** No measurement repeats better than that. */
  private static final double REPEATABLE = 0.01;

  /**
   * A line.
   *
   * @param start where the wire carries nothing
   */
  record Line(double start, double slope) {}

  private LineFit() {}

  /** {@return the barrier that fits times of two or more world sizes, bytes being ranks less 2} */
  static Barrier barrier(ImmutableList<Sample> samples) {
    var line = fit(samples);
    return new Barrier(CurveFit.round(line.start()), CurveFit.round(line.slope()));
  }

  /** {@return the line that fits samples with two or more numbers of bytes} */
  static Line fit(ImmutableList<Sample> samples) {
    var weights = new double[samples.size()];
    Arrays.fill(weights, 1);
    var line = weighted(samples, weights);
    for (int round = 0; round < REWEIGHTINGS; round++) {
      var errors = new double[weights.length];
      for (int i = 0; i < errors.length; i++) {
        var sample = samples.get(i);
        errors[i] = Math.abs((line.start() + line.slope() * sample.wire()) / sample.micros() - 1);
      }
      var sorted = errors.clone();
      Arrays.sort(sorted);
      double usual = Math.max(REPEATABLE, 1.5 * sorted[sorted.length / 2]);
      for (int i = 0; i < errors.length; i++) {
        weights[i] = Math.min(1, usual / errors[i]);
      }
      line = weighted(samples, weights);
    }
    return line;
  }

  /** Of two unknowns, so that bounds are simple. */
  private static Line weighted(ImmutableList<Sample> samples, double[] weights) {
    double one = 0;
    double x = 0;
    double xx = 0;
    double y = 0;
    double xy = 0;
    for (int i = 0; i < weights.length; i++) {
      var sample = samples.get(i);
      double w = weights[i] / (sample.micros() * sample.micros());
      one += w;
      x += w * sample.wire();
      xx += w * sample.wire() * sample.wire();
      y += w * sample.micros();
      xy += w * sample.wire() * sample.micros();
    }
    double determinant = one * xx - x * x;
    double start = (xx * y - x * xy) / determinant;
    double slope = (one * xy - x * y) / determinant;
    if (!(start >= 0)) {
      return new Line(0, xy / xx);
    }
    return slope >= 0 ? new Line(start, slope) : new Line(y / one, 0);
  }
}
