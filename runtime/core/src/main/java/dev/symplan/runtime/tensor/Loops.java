package dev.symplan.runtime.tensor;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Loops over tensors of one shape, in rows: dimensions that lie one after another in all tensors
 * are taken together, and the innermost is handed out in pieces that fit the cache.
 */
public final class Loops {

  /** Elements of a row that are worked on at once. */
  public static final int CHUNK = 1024;

  /** The work on one piece of a row. */
  @FunctionalInterface
  public interface Row {
    /**
     * @param offsets where the piece begins in each tensor, in bytes
     * @param steps the distance of neighbours in each tensor, in bytes
     */
    void run(long[] offsets, long[] steps, int count);
  }

  private Loops() {}

  /**
   * Calls {@code row} for every piece.
   *
   * @param sizes the common shape
   * @param strides for each tensor its strides in bytes, 0 if it is broadcast
   */
  public static void forEach(long[] sizes, List<long[]> strides, Row row) {
    for (long size : sizes) {
      if (size == 0) {
        return;
      }
    }
    int tensors = strides.size();
    var shape = new long[sizes.length + 1];
    var steps = new long[tensors][sizes.length + 1];
    int dims = collapse(sizes, strides, shape, steps);
    int inner = dims - 1;
    var index = new long[dims];
    var base = new long[tensors];
    var offsets = new long[tensors];
    var innerSteps = new long[tensors];
    for (int t = 0; t < tensors; t++) {
      innerSteps[t] = steps[t][inner];
    }
    while (true) {
      for (long at = 0; at < shape[inner]; at += CHUNK) {
        for (int t = 0; t < tensors; t++) {
          offsets[t] = base[t] + at * innerSteps[t];
        }
        row.run(offsets, innerSteps, (int) Math.min(CHUNK, shape[inner] - at));
      }
      int dim = inner - 1;
      while (dim >= 0) {
        index[dim]++;
        for (int t = 0; t < tensors; t++) {
          base[t] += steps[t][dim];
        }
        if (index[dim] < shape[dim]) {
          break;
        }
        for (int t = 0; t < tensors; t++) {
          base[t] -= steps[t][dim] * shape[dim];
        }
        index[dim] = 0;
        dim--;
      }
      if (dim < 0) {
        return;
      }
    }
  }

  /**
   * Joins neighbouring dimensions that lie one after another in all tensors; at least one is left.
   *
   * @param shape filled with the sizes that are left
   * @param steps filled with the strides that are left, for each tensor
   * @return how many dimensions are left
   */
  public static int collapse(long[] sizes, List<long[]> strides, long[] shape, long[][] steps) {
    int dims = 0;
    for (int d = 0; d < sizes.length; d++) {
      if (sizes[d] == 1) {
        continue;
      }
      boolean joins = dims > 0;
      for (int t = 0; joins && t < steps.length; t++) {
        joins = steps[t][dims - 1] == strides.get(t)[d] * sizes[d];
      }
      if (joins) {
        shape[dims - 1] *= sizes[d];
        dims--;
      } else {
        shape[dims] = sizes[d];
      }
      for (int t = 0; t < steps.length; t++) {
        steps[t][dims] = strides.get(t)[d];
      }
      dims++;
    }
    if (dims == 0) {
      shape[0] = 1;
      dims = 1;
    }
    return dims;
  }

  /** {@return a tensor's strides in bytes, as it is broadcast to {@code sizes}} */
  public static long[] byteStrides(TensorType type, long[] sizes) {
    var strides = new long[sizes.length];
    int added = sizes.length - type.rank();
    for (int i = added; i < sizes.length; i++) {
      boolean broadcast = type.size(i - added) == 1 && sizes[i] != 1;
      strides[i] = broadcast ? 0 : type.stride(i - added) * type.dtype().bytes();
    }
    return strides;
  }

  /** Copies elements, converted to the target's type. */
  static void copy(HostTensor from, HostTensor to) {
    var sizes = to.type().sizes().toArray();
    var strides = List.of(byteStrides(from.type(), sizes), byteStrides(to.type(), sizes));
    MemorySegment source = from.memory();
    MemorySegment target = to.memory();
    if (from.dtype() == to.dtype()) {
      copyBytes(source, target, sizes, strides, to.dtype().bytes());
    } else if (from.dtype().isFloat() || to.dtype().isFloat()) {
      var values = new double[CHUNK];
      boolean viaFloat = to.dtype().isFloat() && to.dtype() != DType.F64;
      forEach(
          sizes,
          strides,
          (offsets, steps, count) -> {
            if (viaFloat) {
              Elements.loadAsFloats(source, offsets[0], steps[0], from.dtype(), values, 0, count);
            } else {
              Elements.load(source, offsets[0], steps[0], from.dtype(), values, count);
            }
            Elements.store(values, count, target, offsets[1], steps[1], to.dtype());
          });
    } else {
      var values = new long[CHUNK];
      forEach(
          sizes,
          strides,
          (offsets, steps, count) -> {
            Elements.load(source, offsets[0], steps[0], from.dtype(), values, count);
            Elements.store(values, count, target, offsets[1], steps[1], to.dtype());
          });
    }
  }

  /** Elements of one type are moved as bytes, so that types without arithmetic can be too. */
  private static void copyBytes(
      MemorySegment source, MemorySegment target, long[] sizes, List<long[]> strides, int bytes) {
    forEach(
        sizes,
        strides,
        (offsets, steps, count) -> {
          if (steps[0] == bytes && steps[1] == bytes) {
            MemorySegment.copy(source, offsets[0], target, offsets[1], (long) count * bytes);
          } else {
            for (int i = 0; i < count; i++) {
              MemorySegment.copy(
                  source, offsets[0] + i * steps[0], target, offsets[1] + i * steps[1], bytes);
            }
          }
        });
  }
}
