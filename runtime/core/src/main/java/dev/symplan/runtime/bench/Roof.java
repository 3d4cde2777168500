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

  /** The resource that limits the speed of a step. */
  public enum Limit {
    COPY("copy"),
    PRODUCT("product");

    private final String text;

    Limit(String text) {
      this.text = text;
    }

    public String text() {
      return text;
    }
  }

  /**
   * The least time of a step.
   *
   * @param limit the rate that gives this time
   */
  public record Bound(double micros, Limit limit) {}

  /** {@return the bound of a step's memory or of its operations, the larger; empty if unknown} */
  public Optional<Bound> bound(Work work) {
    return memory(work)
        .flatMap(
            memory ->
                matrix(work).map(matrix -> matrix.micros() > memory.micros() ? matrix : memory));
  }

  /** {@return the microseconds of the bound} */
  public OptionalDouble micros(Work work) {
    return bound(work).stream().mapToDouble(Bound::micros).findFirst();
  }

  private Optional<Bound> memory(Work work) {
    return copy.map(measured -> new Bound(work.bytes() / (1e3 * measured.rate()), Limit.COPY));
  }

  private Optional<Bound> matrix(Work work) {
    if (work.flops() == 0) {
      return Optional.of(new Bound(0, Limit.PRODUCT));
    }
    return work.dtype()
        .flatMap(dtype -> Optional.ofNullable(products.get(dtype)))
        .map(product -> new Bound(work.flops() / (1e3 * product.rate()), Limit.PRODUCT));
  }
}
