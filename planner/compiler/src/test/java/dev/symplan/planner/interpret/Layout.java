package dev.symplan.planner.interpret;

import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * The runs of consecutive bytes that a tensor consists of.
 *
 * @param sizes of the dimensions outside the runs, outermost first
 * @param strides of these, in bytes
 * @param run the bytes of each run
 */
record Layout(long[] sizes, long[] strides, long run) {

  /** {@return the runs in the order of the elements} */
  static Layout ofElements(TensorType type) {
    var dims = new ArrayList<Integer>();
    for (int d = 0; d < type.rank(); d++) {
      if (type.size(d) != 1) {
        dims.add(d);
      }
    }
    return of(type, dims);
  }

  /** {@return the runs in the order in which they lie in memory, none of them twice} */
  static Layout ofMemory(TensorType type) {
    var dims = new ArrayList<Integer>();
    for (int d = 0; d < type.rank(); d++) {
      if (type.size(d) != 1 && (type.stride(d) != 0 || type.size(d) == 0)) {
        dims.add(d);
      }
    }
    dims.sort(Comparator.comparingLong((Integer d) -> type.stride(d)).reversed());
    return of(type, dims);
  }

  private static Layout of(TensorType type, List<Integer> dims) {
    long item = type.dtype().bytes();
    long run = item;
    int outer = dims.size();
    while (outer > 0 && type.stride(dims.get(outer - 1)) * item == run) {
      run *= type.size(dims.get(outer - 1));
      outer--;
    }
    var sizes = new long[outer];
    var strides = new long[outer];
    for (int i = 0; i < outer; i++) {
      sizes[i] = type.size(dims.get(i));
      strides[i] = type.stride(dims.get(i)) * item;
    }
    return new Layout(sizes, strides, type.numel() == 0 ? 0 : run);
  }

  /** {@return the number of runs} */
  long count() {
    long count = run == 0 ? 0 : 1;
    for (long size : sizes) {
      count *= size;
    }
    return count;
  }

  /** Gives where each run begins, in bytes after the first element. */
  void forEach(LongConsumer consumer) {
    long count = count();
    for (long i = 0; i < count; i++) {
      consumer.accept(offset(i));
    }
  }

  private long offset(long run) {
    long rest = run;
    long offset = 0;
    for (int d = sizes.length - 1; d >= 0; d--) {
      offset += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    return offset;
  }
}
