package dev.symplan.runtime.tensor;

import com.google.common.hash.Hashing;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/**
 * Made-up tensors: the same for the same seed, rank and name, in every process.
 *
 * <p>Floats are normal; matrices are scaled like freshly initialised weights, so that products of
 * many of them stay in range. Integers are small and not negative, so that they can be indices.
 */
public final class SeededInputs {
  private static final int MAX_INTEGER = 8;

  private SeededInputs() {}

  /** Fills a tensor. */
  public static void fill(HostTensor tensor, long seed, int rank, String name) {
    if (tensor.dtype().kind() == DType.Kind.COMPLEX) {
      fill(tensor.as(tensor.type().parts()), seed, rank, name);
      return;
    }
    var hash =
        Hashing.sipHash24()
            .newHasher()
            .putLong(seed)
            .putInt(rank)
            .putString(name, StandardCharsets.UTF_8)
            .hash();
    var random = new SplittableRandom(hash.asLong());
    var type = tensor.type();
    var made = HostTensor.allocate(type.contiguous());
    double scale = scale(type);
    long count = type.numel();
    long width = type.dtype().bytes();
    for (long i = 0; i < count; i++) {
      switch (type.dtype().kind()) {
        case FLOAT ->
            Elements.setDouble(
                made.memory(), i * width, type.dtype(), random.nextGaussian() * scale);
        case INTEGER ->
            Elements.setLong(made.memory(), i * width, type.dtype(), random.nextInt(MAX_INTEGER));
        case BOOL -> Elements.setLong(made.memory(), i * width, type.dtype(), random.nextInt(2));
        case COMPLEX -> throw new AssertionError("complex numbers are filled by their parts");
      }
    }
    tensor.copyFrom(made);
  }

  private static double scale(TensorType type) {
    return type.rank() < 2 ? 1 : 1 / Math.sqrt(Math.max(1, Math.max(type.size(0), type.size(1))));
  }
}
