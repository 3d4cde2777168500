package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Common checks of ops on images [batch, channels, …]. */
final class Images {
  private static final int[][] CHANNELS_LAST = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};

  private Images() {}

  /** {@code suggest_memory_format}: the dimensions innermost first, if the channels are. */
  private static int @Nullable [] channelsLast(TensorType type) {
    if (type.rank() != 4 && type.rank() != 5) {
      return null;
    }
    var order = CHANNELS_LAST[type.rank() - 4];
    long least = 0;
    for (int dim : order) {
      // A tensor of 1 element in each dimension counts as row-major.
      if (type.size(dim) == 0
          || type.stride(dim) < least
          || type.stride(1) == 0
          || (dim == 0 && least == type.stride(1))) {
        return null;
      }
      least = type.stride(dim) * Math.max(1, type.size(dim));
    }
    return order;
  }

  /** {@return a type of this shape, with the channels innermost where one operand has them so} */
  static TensorType typeLike(List<TensorType> operands, ImmutableLongArray sizes) {
    var dtype = operands.getFirst().dtype();
    for (var operand : operands) {
      int @Nullable [] order = channelsLast(operand);
      if (order != null && order.length == sizes.length()) {
        return new TensorType(dtype, sizes, Layouts.ordered(sizes, order), MemorySpace.ANY);
      }
    }
    return TensorType.contiguous(dtype, sizes);
  }

  /**
   * {@return an entry of a list that has one for each dimension, or one for all}
   *
   * @param least the least value that it may have
   */
  static long entry(OpCall call, String param, int dim, int dims, long least) {
    var list = call.integers(param);
    if (list.length() != dims && list.length() != 1) {
      throw new OpTypeException(
          "%s %s does not have %s".formatted(param, Shapes.text(list), Units.count(dims, "entry")));
    }
    long value = list.get(list.length() == 1 ? 0 : dim);
    if (value < least || value > Integer.MAX_VALUE) {
      throw new OpTypeException(
          "%s is %s, but must lie in [%s, %s]"
              .formatted(param, Shapes.text(list), least, Integer.MAX_VALUE));
    }
    return value;
  }

  /** Refuses integers, which GPUs have no kernels for. */
  static void checkFloat(TensorType type) {
    if (Promotion.isIntegral(type.dtype())) {
      throw new OpTypeException(
          "works on floats, not on " + type.dtype().shortName(),
          "convert with prims::convert_element_type");
    }
  }

  /** {@return {@code output_mask}} */
  static boolean[] mask(OpCall call, int count) {
    var mask = new boolean[count];
    if (!(call.arg("output_mask") instanceof Arg.Seq(var items)) || items.size() != count) {
      throw new OpTypeException("output_mask must be a list of %s booleans".formatted(count));
    }
    for (int i = 0; i < count; i++) {
      mask[i] = items.get(i).equals(new Arg.Bool(true));
    }
    return mask;
  }
}
