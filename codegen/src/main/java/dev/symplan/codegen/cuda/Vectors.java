package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.machine.Alignment;
import java.util.Collection;
import java.util.function.IntPredicate;

/**
 * Neighbouring elements that a thread reads and writes at once: as many of each tensor, and 16
 * bytes of one at the most where elements have different sizes.
 *
 * @param width how many; 1 for single elements
 */
record Vectors(int width) {
  static final Vectors NONE = new Vectors(1);

  static final int MAX_WIDTH = 8;

  /** From so many elements on, memory is what takes the time. */
  private static final long LONG = 1 << 15;

  private static final String TYPE =
      """

      template <class T>
      struct alignas(sizeof(T) * %1$s < 16 ? sizeof(T) * %1$s : 16) Vector {
        T e[%1$s];
      };
      """;

  /**
   * {@return whether a tensor has so many elements that reading and writing them takes the time}
   */
  static boolean isLong(TensorType type) {
    return type.numel() >= LONG;
  }

  /**
   * {@return the widest vectors, of 16 bytes of the shortest elements and of those that are written
   * at the most: of more, a warp's stores would leave gaps}
   *
   * @param dtypes of all tensors
   * @param written of those that are written
   * @param fits whether all tensors lie for vectors of a width
   */
  static Vectors widest(Collection<DType> dtypes, Collection<DType> written, IntPredicate fits) {
    int least = dtypes.stream().mapToInt(DType::bytes).min().orElse(Alignment.VECTOR);
    int most = written.stream().mapToInt(DType::bytes).max().orElse(least);
    for (int wide = Math.min(MAX_WIDTH, Alignment.VECTOR / Math.max(least, most));
        wide > 1;
        wide /= 2) {
      if (fits.test(wide)) {
        return new Vectors(wide);
      }
    }
    return NONE;
  }

  /**
   * {@return whether so many neighbours along the last dimension are side by side in memory, and
   * begin where a vector may}
   *
   * @param offset of the first element, in bytes
   * @param strides in elements; dimensions of one element may have any
   */
  static boolean fit(
      int width, long offset, int bytes, ImmutableLongArray sizes, ImmutableLongArray strides) {
    int last = sizes.length() - 1;
    boolean fit =
        offset % Math.min(Alignment.VECTOR, (long) width * bytes) == 0
            && strides.get(last) == 1
            && sizes.get(last) % width == 0;
    for (int dim = 0; dim < last; dim++) {
      fit &= sizes.get(dim) == 1 || strides.get(dim) % width == 0;
    }
    return fit;
  }

  /** {@return the same of a tensor with dimensions} */
  static boolean fit(int width, TensorRef ref) {
    var type = ref.type();
    return fit(width, ref.offset(), type.dtype().bytes(), type.sizes(), type.strides());
  }

  /** {@return the declaration of the vectors' type; empty for single elements} */
  String type() {
    return width == 1 ? "" : TYPE.formatted(width);
  }

  /** {@return a statement that reads a vector, of which {@code e} are the elements} */
  static String read(String type, String name, String firstElement) {
    return "const Vector<%s> %s = %s;".formatted(type, name, read(type, firstElement));
  }

  /** {@return a vector in memory, as an expression} */
  static String read(String type, String firstElement) {
    return "*(const Vector<%s>*)&%s".formatted(type, firstElement);
  }

  /** {@return a statement that writes a vector} */
  static String write(String type, String name, String firstElement) {
    return "*(Vector<%s>*)&%s = %s;".formatted(type, firstElement, name);
  }
}
