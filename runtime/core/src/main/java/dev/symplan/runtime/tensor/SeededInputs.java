package dev.symplan.runtime.tensor;

import com.google.common.hash.Hashing;
import dev.symplan.ir.DType;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/**
 * Made-up tensors: the same for the same seed, rank and name, in every process.
 *
 * <p>Floats are normal; matrices are scaled like freshly initialised weights, so that products of
 * many of them stay in range. Integers are small and not negative, so that they can be indices.
 * {@link Need} has the other needs of ops.
 */
public final class SeededInputs {
  private static final int MAX_INTEGER = 8;

  /** A prime number of floats that are made up before they repeat, so that rows differ. */
  private static final long PATTERN = 262_139;

  /** Elements that are made up one after the other; pieces of large tensors, on all cores. */
  private static final long PIECE = 1 << 20;

  private SeededInputs() {}

  /**
   * The values that ops need in an input.
   *
   * @param below integers are below this, and below the small number that they otherwise are below
   * @param trues how many elements of a mask are true, in any order; where absent, each may be
   */
  public record Need(long below, OptionalLong trues) {
    public static final Need NOTHING = new Need(Long.MAX_VALUE, OptionalLong.empty());
  }

  /** Fills a tensor that may have any elements. */
  public static void fill(HostTensor tensor, long seed, int rank, String name) {
    fill(tensor, seed, rank, name, Need.NOTHING);
  }

  /** Fills a tensor. */
  public static void fill(HostTensor tensor, long seed, int rank, String name, Need need) {
    fill(tensor, seed, rank, name, need, MAX_INTEGER, Long.MAX_VALUE);
  }

  /**
   * Fills a tensor to measure what is done with it: with the same floats again and again where it
   * is large, as making so many up takes longer than the measurements, and with all the indices
   * that its readers have elements for.
   */
  public static void fillRepeating(HostTensor tensor, long seed, int rank, String name, Need need) {
    boolean isFloat = tensor.dtype().kind() == DType.Kind.FLOAT;
    long below = need.below() == Long.MAX_VALUE ? MAX_INTEGER : need.below();
    fill(tensor, seed, rank, name, need, below, isFloat ? PATTERN : Long.MAX_VALUE);
  }

  private static void fill(
      HostTensor tensor,
      long seed,
      int rank,
      String name,
      Need need,
      long integers,
      long different) {
    if (tensor.dtype().kind() == DType.Kind.COMPLEX) {
      fill(tensor.as(tensor.type().parts()), seed, rank, name, need, integers, different);
      return;
    }
    var type = tensor.type();
    var made = type.isContiguous() ? tensor : HostTensor.allocate(type.contiguous());
    long count = type.numel();
    long width = type.dtype().bytes();
    long first = Math.min(different, count);
    var elements =
        new Made(
            made.memory(),
            type.dtype(),
            scale(type),
            (int) Math.clamp(Math.min(integers, need.below()), 1, Integer.MAX_VALUE));
    if (need.trues().isPresent()) {
      elements.some(random(seed, rank, name, 0), count, need.trues().getAsLong());
    } else {
      var pieces =
          LongStream.range(0, Math.ceilDiv(first, PIECE))
              .<Supplier<Boolean>>mapToObj(
                  piece ->
                      () -> {
                        long begin = piece * PIECE;
                        elements.each(
                            random(seed, rank, name, piece), begin, Math.min(first, begin + PIECE));
                        return true;
                      })
              .toList();
      Parallel.all(pieces);
    }
    for (long i = different; i < count; i += different) {
      MemorySegment.copy(
          made.memory(), 0, made.memory(), i * width, Math.min(different, count - i) * width);
    }
    if (made != tensor) {
      tensor.copyFrom(made);
    }
  }

  /**
   * {@return the generator of a piece; that of the first one does not depend on there being more}
   */
  private static SplittableRandom random(long seed, int rank, String name, long piece) {
    var hasher =
        Hashing.sipHash24()
            .newHasher()
            .putLong(seed)
            .putInt(rank)
            .putString(name, StandardCharsets.UTF_8);
    return new SplittableRandom((piece == 0 ? hasher : hasher.putLong(piece)).hash().asLong());
  }

  /**
   * Elements one after the other.
   *
   * @param below integers are below this
   */
  private record Made(MemorySegment memory, DType dtype, double scale, int below) {
    void each(SplittableRandom random, long begin, long end) {
      long width = dtype.bytes();
      for (long i = begin; i < end; i++) {
        switch (dtype.kind()) {
          case FLOAT -> Elements.setDouble(memory, i * width, dtype, random.nextGaussian() * scale);
          case INTEGER -> Elements.setLong(memory, i * width, dtype, random.nextInt(below));
          case BOOL -> Elements.setLong(memory, i * width, dtype, random.nextInt(2));
          case COMPLEX -> throw new AssertionError("complex numbers are filled by their parts");
        }
      }
    }

    /** Makes so many elements true. */
    void some(SplittableRandom random, long count, long trues) {
      long left = trues;
      for (long i = 0; i < count; i++) {
        boolean on = random.nextLong(count - i) < left;
        left -= on ? 1 : 0;
        Elements.setLong(memory, i * dtype.bytes(), dtype, on ? 1 : 0);
      }
    }
  }

  private static double scale(TensorType type) {
    return type.rank() < 2 ? 1 : 1 / Math.sqrt(Math.max(1, Math.max(type.size(0), type.size(1))));
  }
}
