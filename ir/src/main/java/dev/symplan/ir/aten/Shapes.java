package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;

/** Arithmetic of shapes. */
public final class Shapes {
  private Shapes() {}

  static String text(ImmutableLongArray sizes) {
    return sizes.asList().toString();
  }

  /** {@return the list with one entry replaced} */
  static ImmutableLongArray with(ImmutableLongArray list, int index, long value) {
    var values = list.toArray();
    values[index] = value;
    return ImmutableLongArray.copyOf(values);
  }

  static ImmutableLongArray without(ImmutableLongArray list, int index) {
    return ImmutableLongArray.builder(list.length())
        .addAll(list.subArray(0, index))
        .addAll(list.subArray(index + 1, list.length()))
        .build();
  }

  /** {@return the list with a value put before the entry at {@code index}} */
  static ImmutableLongArray insert(ImmutableLongArray list, int index, long value) {
    return ImmutableLongArray.builder(list.length() + 1)
        .addAll(list.subArray(0, index))
        .add(value)
        .addAll(list.subArray(index, list.length()))
        .build();
  }

  static ImmutableLongArray join(ImmutableLongArray a, ImmutableLongArray b) {
    return ImmutableLongArray.builder(a.length() + b.length()).addAll(a).addAll(b).build();
  }

  /** {@return the entries in another order: that at {@code order[i]} comes to {@code i}} */
  static ImmutableLongArray permute(ImmutableLongArray list, int[] order) {
    var values = ImmutableLongArray.builder(order.length);
    for (int dim : order) {
      values.add(list.get(dim));
    }
    return values.build();
  }

  /**
   * {@return the product}
   *
   * @throws OpTypeException when it does not fit 64 bits
   */
  static long times(long a, long b) {
    try {
      return Math.multiplyExact(a, b);
    } catch (ArithmeticException _) {
      throw new OpTypeException("%s × %s is too large".formatted(a, b));
    }
  }

  static long sum(ImmutableLongArray values) {
    long sum = 0;
    for (int i = 0; i < values.length(); i++) {
      try {
        sum = Math.addExact(sum, values.get(i));
      } catch (ArithmeticException _) {
        throw new OpTypeException("the sum of %s is too large".formatted(text(values)));
      }
    }
    return sum;
  }

  /** Refuses sizes that are negative. */
  static ImmutableLongArray checked(ImmutableLongArray sizes) {
    if (sizes.stream().anyMatch(size -> size < 0)) {
      throw new OpTypeException("the shape %s has a negative size".formatted(text(sizes)));
    }
    return sizes;
  }

  /**
   * {@return the shape that both broadcast to}
   *
   * @throws OpTypeException when a size differs and is 1 in neither
   */
  static ImmutableLongArray broadcast(ImmutableLongArray a, ImmutableLongArray b) {
    int rank = Math.max(a.length(), b.length());
    var sizes = new long[rank];
    for (int i = 0; i < rank; i++) {
      long x = fromEnd(a, rank - i);
      long y = fromEnd(b, rank - i);
      if (x != y && x != 1 && y != 1) {
        throw new OpTypeException(
            "shapes %s and %s do not broadcast: sizes %s and %s at dimension %s"
                .formatted(text(a), text(b), x, y, i - rank),
            "sizes broadcast if they are equal or one of them is 1");
      }
      sizes[i] = x == 1 ? y : x;
    }
    return ImmutableLongArray.copyOf(sizes);
  }

  private static long fromEnd(ImmutableLongArray sizes, int distance) {
    return distance > sizes.length() ? 1 : sizes.get(sizes.length() - distance);
  }

  public static ImmutableLongArray broadcast(List<TensorType> tensors) {
    var sizes = ImmutableLongArray.of();
    for (var tensor : tensors) {
      sizes = broadcast(sizes, tensor.sizes());
    }
    return sizes;
  }

  /**
   * Checks that {@code sizes} broadcasts to {@code target} without changing it.
   *
   * @param name the name of the tensor or list that has the sizes
   */
  static void checkBroadcastsTo(String name, ImmutableLongArray sizes, ImmutableLongArray target) {
    boolean fits = sizes.length() <= target.length();
    for (int i = 1; fits && i <= sizes.length(); i++) {
      long size = fromEnd(sizes, i);
      fits = size == 1 || size == fromEnd(target, i);
    }
    if (!fits) {
      throw new OpTypeException(
          "%s of shape %s does not broadcast to %s".formatted(name, text(sizes), text(target)));
    }
  }

  /** {@return the shape with its one -1 replaced by what is left} */
  static ImmutableLongArray infer(long numel, ImmutableLongArray wanted) {
    long known = 1;
    int open = -1;
    for (int i = 0; i < wanted.length(); i++) {
      long size = wanted.get(i);
      if (size == -1 && open < 0) {
        open = i;
      } else if (size < 0) {
        throw new OpTypeException(
            size == -1
                ? "the shape %s leaves two sizes open".formatted(text(wanted))
                : "the shape %s has a negative size".formatted(text(wanted)));
      } else {
        known = times(known, size);
      }
    }
    if (open >= 0 && known == 0 && numel == 0) {
      throw new OpTypeException(
          "-1 in %s could be any size, as there are no elements".formatted(text(wanted)));
    }
    if (open < 0 ? known != numel : known == 0 || numel % known != 0) {
      throw new OpTypeException(
          "%s elements do not fit the shape %s".formatted(numel, text(wanted)));
    }
    return open < 0 ? wanted : with(wanted, open, numel / known);
  }

  /**
   * {@return for each dimension whether {@code dims} names it}
   *
   * @throws OpTypeException when one is out of range or named twice
   */
  static boolean[] mask(ImmutableLongArray dims, int rank, String param) {
    var named = new boolean[Math.max(1, rank)];
    for (int i = 0; i < dims.length(); i++) {
      int dim = OpCall.wrapDim(dims.get(i), rank, param);
      if (named[dim]) {
        throw new OpTypeException("%s names dimension %s twice".formatted(param, dim));
      }
      named[dim] = true;
    }
    return named;
  }

  /** {@return the shape after the reduction of the dimensions of a mask} */
  static ImmutableLongArray reduce(ImmutableLongArray sizes, boolean[] gone, boolean keepdim) {
    var rest = ImmutableLongArray.builder(sizes.length());
    for (int i = 0; i < sizes.length(); i++) {
      if (!gone[i]) {
        rest.add(sizes.get(i));
      } else if (keepdim) {
        rest.add(1);
      }
    }
    return rest.build();
  }

  /** {@return the number of steps in a half-open range; 0 if it is empty} */
  static long steps(long start, long end, long step) {
    return end <= start ? 0 : Math.ceilDiv(end - start, step);
  }
}
