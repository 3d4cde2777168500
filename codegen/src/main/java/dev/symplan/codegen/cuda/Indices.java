package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import java.util.List;

/**
 * Elements of tensors in C++: from their number to an index for each dimension, and to an offset.
 */
final class Indices {
  private Indices() {}

  /** {@return the type of a number of so many elements} */
  static String number(long count) {
    return count < 1L << 31 ? "unsigned" : "long long";
  }

  /**
   * {@return statements that declare an index for each dimension}
   *
   * @param indent before each
   * @param declaration its type and the first part of its name; the other is the dimension
   * @param number a variable that counts elements row-major; it is used up
   */
  static String of(String indent, String declaration, String number, ImmutableLongArray sizes) {
    var text = new StringBuilder();
    for (int dim = sizes.length() - 1; dim >= 0; dim--) {
      // Expressions without elements are not computed, but compiled.
      text.append(
          "%1$s%2$s%3$s = %4$s %% %5$s;\n%1$s%4$s /= %5$s;\n"
              .formatted(indent, declaration, dim, number, Math.max(1, sizes.get(dim))));
    }
    return text.toString();
  }

  /** {@return the distance of an element from the first, in elements} */
  static String offset(TensorType type, List<String> indices) {
    var terms = new StringBuilder();
    for (int dim = 0; dim < type.rank(); dim++) {
      if (type.size(dim) != 1 && type.stride(dim) != 0) {
        terms
            .append(terms.isEmpty() ? "" : " + ")
            .append("(long long)(%s) * %s".formatted(indices.get(dim), type.stride(dim)));
      }
    }
    return terms.isEmpty() ? "0" : terms.toString();
  }

  /** {@return the strides of a tensor as it is broadcast to so many dimensions} */
  static ImmutableLongArray broadcast(TensorType type, int rank) {
    var strides = new long[rank];
    for (int dim = 0; dim < type.rank(); dim++) {
      strides[rank - type.rank() + dim] = type.size(dim) == 1 ? 0 : type.stride(dim);
    }
    return ImmutableLongArray.copyOf(strides);
  }
}
