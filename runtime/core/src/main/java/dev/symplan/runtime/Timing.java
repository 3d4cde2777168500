package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import java.util.Arrays;
import java.util.stream.DoubleStream;

/**
 * Several measurements of the time that one run takes.
 *
 * @param micros in microseconds, the shortest first
 */
public record Timing(ImmutableList<Double> micros) {

  public Timing {
    if (micros.isEmpty()) {
      throw new IllegalArgumentException("no measurement");
    }
  }

  /** {@return the measurements, sorted} */
  public static Timing of(double... micros) {
    return new Timing(
        DoubleStream.of(Arrays.stream(micros).sorted().toArray())
            .boxed()
            .collect(ImmutableList.toImmutableList()));
  }

  /** {@return the upper median} */
  public double median() {
    return micros.get(micros.size() / 2);
  }

  public double least() {
    return micros.getFirst();
  }

  public double most() {
    return micros.getLast();
  }
}
