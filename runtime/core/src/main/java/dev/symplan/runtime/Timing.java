package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.launch.World;
import java.nio.ByteBuffer;
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

  /**
   * {@return how long work takes by this host's clock}
   *
   * @param runs one after the other in each measurement
   * @param measurements at least one; another one before them is not counted
   */
  public static Timing ofHost(int runs, int measurements, Runnable work) {
    var micros = new double[measurements];
    for (int i = -1; i < measurements; i++) {
      long begin = System.nanoTime();
      for (int run = 0; run < runs; run++) {
        work.run();
      }
      micros[Math.max(0, i)] = (System.nanoTime() - begin) / 1e3 / runs;
    }
    return of(micros);
  }

  /**
   * {@return the same on all ranks: the longest of what each of them measured as its shortest time,
   * and so on}
   *
   * @param world the processes, which all took as many measurements
   */
  public Timing slowest(World world) {
    var own = ByteBuffer.allocate(Double.BYTES * micros.size());
    micros.forEach(own::putDouble);
    var all = new double[micros.size()];
    for (var bytes : world.gather("measured times", own.array())) {
      var times = ByteBuffer.wrap(bytes);
      for (int i = 0; i < all.length; i++) {
        all[i] = Math.max(all[i], times.getDouble());
      }
    }
    return of(all);
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
