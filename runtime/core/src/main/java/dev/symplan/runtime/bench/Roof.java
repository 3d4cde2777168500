package dev.symplan.runtime.bench;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.cost.Work;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.failure.RunException;
import java.util.Comparator;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * The highest measured rates of a device: of a large copy and of large products. Steps whose memory
 * fits into a cache can be faster.
 *
 * @param copy empty if it could not be measured
 * @param products by the type of their factors
 */
public record Roof(Optional<Copy> copy, ImmutableMap<DType, Product> products) {
  private static final DType COPIED = DType.F32;
  private static final int RUNS = 10;

  /**
   * A copy within a device's memory.
   *
   * @param bytes that are read, and written
   */
  public record Copy(long bytes, Timing timing) {

    /** {@return bytes read and written, in GB/s} */
    public double rate() {
      return 2.0 * bytes / (1e3 * timing.median());
    }
  }

  /**
   * A product of square matrices.
   *
   * @param size their rows
   */
  public record Product(long size, Timing timing) {
    public double flops() {
      return 2.0 * size * size * size;
    }

    /** {@return operations, in GFLOP/s} */
    public double rate() {
      return flops() / (1e3 * timing.median());
    }
  }

  /**
   * Measures one.
   *
   * @param dtypes the types of which products are measured
   * @param size rows of the factors
   * @param bytes of the copy
   * @param failed takes what could not be measured, and why
   */
  static Roof measure(
      BenchSessions sessions,
      Target target,
      int ranks,
      Set<DType> dtypes,
      long size,
      long bytes,
      int measurements,
      BiConsumer<String, RunException> failed) {
    Optional<Copy> copy = Optional.empty();
    try {
      var plan = BenchPrograms.plan(BenchPrograms.copy(COPIED, bytes, ranks), target);
      copy =
          Optional.of(
              new Copy(
                  bytes / COPIED.bytes() * COPIED.bytes(),
                  sessions.time(plan, RUNS, measurements)));
    } catch (RunException e) {
      failed.accept("a copy", e);
    }
    var products = ImmutableMap.<DType, Product>builder();
    for (var dtype : dtypes.stream().sorted(Comparator.naturalOrder()).toList()) {
      try {
        var plan = BenchPrograms.plan(BenchPrograms.product(dtype, size, ranks), target);
        products.put(dtype, new Product(size, sessions.time(plan, RUNS, measurements)));
      } catch (RunException e) {
        failed.accept("a product of " + dtype.shortName(), e);
      }
    }
    return new Roof(copy, products.buildOrThrow());
  }

  /** {@return the microseconds that a step's memory takes at least; empty if that is unknown} */
  public OptionalDouble memoryMicros(Work work) {
    return copy.isEmpty()
        ? OptionalDouble.empty()
        : OptionalDouble.of(work.bytes() / (1e3 * copy.get().rate()));
  }

  /** {@return the microseconds that its operations take at least; empty if that is unknown} */
  public OptionalDouble matrixMicros(Work work) {
    if (work.flops() == 0) {
      return OptionalDouble.of(0);
    }
    return work.dtype()
        .flatMap(dtype -> Optional.ofNullable(products.get(dtype)))
        .map(product -> OptionalDouble.of(work.flops() / (1e3 * product.rate())))
        .orElse(OptionalDouble.empty());
  }

  /** {@return the larger of both; empty if one is unknown} */
  public OptionalDouble micros(Work work) {
    var memory = memoryMicros(work);
    var matrix = matrixMicros(work);
    return memory.isPresent() && matrix.isPresent()
        ? OptionalDouble.of(Math.max(memory.getAsDouble(), matrix.getAsDouble()))
        : OptionalDouble.empty();
  }
}
