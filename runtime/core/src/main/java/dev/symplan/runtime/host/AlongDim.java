package dev.symplan.runtime.host;

import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * The rows of tensors along one dimension: what ops work on that combine the elements of one
 * dimension only.
 */
final class AlongDim {

  /** A row of one tensor. */
  static final class Row {
    private final HostTensor tensor;
    private final long step;
    private final int size;
    private long offset;

    private Row(HostTensor tensor, int dim) {
      this.tensor = tensor;
      this.step = tensor.type().stride(dim) * tensor.dtype().bytes();
      this.size = Math.toIntExact(tensor.type().size(dim));
    }

    int size() {
      return size;
    }

    DType dtype() {
      return tensor.dtype();
    }

    double[] load() {
      var values = new double[size];
      Elements.load(tensor.memory(), offset, step, tensor.dtype(), values, size);
      return values;
    }

    long[] loadLongs() {
      var values = new long[size];
      Elements.load(tensor.memory(), offset, step, tensor.dtype(), values, size);
      return values;
    }

    /** {@return numbers that are in the order of the integers, whether these have a sign or not} */
    long[] loadOrdered() {
      var values = loadLongs();
      if (dtype() == DType.U64) {
        Arrays.setAll(values, i -> values[i] ^ Long.MIN_VALUE);
      }
      return values;
    }

    void store(double[] values) {
      Elements.store(values, size, tensor.memory(), offset, step, tensor.dtype());
    }

    void store(long[] values) {
      Elements.store(values, size, tensor.memory(), offset, step, tensor.dtype());
    }

    /** Copies element {@code index} of another row of the same type to {@code at}. */
    void copy(int at, Row source, long index) {
      MemorySegment.copy(
          source.tensor.memory(),
          source.offset + index * source.step,
          tensor.memory(),
          offset + at * step,
          tensor.dtype().bytes());
    }
  }

  /** The work on the rows at one index of all tensors. */
  @FunctionalInterface
  interface Body {
    void run(Row[] rows);
  }

  private AlongDim() {}

  /**
   * Calls {@code body} for every row of the first tensor, with the rows of the others at the same
   * place; their other dimensions are at least as large.
   */
  static void forEach(int dim, List<HostTensor> tensors, Body body) {
    var first = Views.atLeastVector(tensors.getFirst()).type();
    var rows = new Row[tensors.size()];
    var steps = new long[tensors.size()][first.rank()];
    for (int t = 0; t < rows.length; t++) {
      var tensor = Views.atLeastVector(tensors.get(t));
      rows[t] = new Row(tensor, dim);
      for (int i = 0; i < first.rank(); i++) {
        steps[t][i] = tensor.type().stride(i) * tensor.dtype().bytes();
      }
    }
    for (int i = 0; i < first.rank(); i++) {
      if (i != dim && first.size(i) == 0) {
        return;
      }
    }
    var index = new long[first.rank()];
    while (true) {
      body.run(rows);
      int i = first.rank() - 1;
      while (i >= 0) {
        if (i != dim) {
          index[i]++;
          advance(rows, steps, i, 1);
          if (index[i] < first.size(i)) {
            break;
          }
          advance(rows, steps, i, -first.size(i));
          index[i] = 0;
        }
        i--;
      }
      if (i < 0) {
        return;
      }
    }
  }

  private static void advance(Row[] rows, long[][] steps, int dim, long count) {
    for (int t = 0; t < rows.length; t++) {
      rows[t].offset += steps[t][dim] * count;
    }
  }
}
