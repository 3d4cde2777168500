package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The engine of reductions: walks the reduced elements of each result in row-major order.
 *
 * <p>Floats are accumulated in double, so that their rounding is that of the result only, integers
 * in 64 bits.
 */
final class Reduction {

  /** What is kept while the floats of one result go by. */
  interface Doubles {
    void start();

    /**
     * @param first the position of the first one among the elements of the result
     */
    void add(double[] values, int count, long first);

    void finish(long[] resultIndex);
  }

  /** What is kept while the integers of one result go by. */
  interface Longs {
    void start();

    void add(long[] values, int count, long first);

    void finish(long[] resultIndex);
  }

  private final HostTensor self;
  private final boolean keepdim;
  private final List<Integer> kept = new ArrayList<>();
  private final List<Integer> gone = new ArrayList<>();

  Reduction(HostTensor self, boolean[] reduced, boolean keepdim) {
    this.self = self;
    this.keepdim = keepdim;
    for (int i = 0; i < self.type().rank(); i++) {
      (reduced[i] ? gone : kept).add(i);
    }
  }

  /** The reduction over the arguments {@code dim} and {@code keepdim}; no dim means all. */
  static Reduction of(HostCall call) {
    var self = call.tensor("self");
    var dims =
        call.hasParam("dim") && call.has("dim") ? call.integers("dim") : ImmutableLongArray.of();
    boolean keepdim = call.hasParam("keepdim") && call.bool("keepdim");
    return new Reduction(self, reduced(self.type().rank(), dims), keepdim);
  }

  /** {@return which dimensions are named; all, where none is} */
  static boolean[] reduced(int rank, ImmutableLongArray dims) {
    var reduced = new boolean[Math.max(1, rank)];
    Arrays.fill(reduced, dims.isEmpty());
    for (long dim : dims.asList()) {
      reduced[OpCall.wrapDim(dim, rank, "dim")] = true;
    }
    return reduced;
  }

  HostTensor self() {
    return self;
  }

  /** {@return the number of elements that make one result} */
  long count() {
    return gone.stream().mapToLong(self.type()::size).reduce(1, (a, b) -> a * b);
  }

  /**
   * The elements come in blocks of the same size in every layout, so that the bits are the same.
   */
  void run(Doubles accumulator) {
    var block = new double[Loops.CHUNK];
    long total = count();
    forEachResult(
        (start, index) -> {
          accumulator.start();
          forEachPiece(
              start,
              (offset, step, count, first) -> {
                for (int done = 0; done < count; ) {
                  int filled = (int) ((first + done) % block.length);
                  int fresh = Math.min(count - done, block.length - filled);
                  Elements.load(
                      self.memory(),
                      offset + done * step,
                      step,
                      self.dtype(),
                      block,
                      filled,
                      fresh);
                  done += fresh;
                  if (filled + fresh == block.length || first + done == total) {
                    accumulator.add(block, filled + fresh, first + done - filled - fresh);
                  }
                }
              });
          accumulator.finish(index);
        });
  }

  void run(Longs accumulator) {
    var values = new long[Loops.CHUNK];
    forEachResult(
        (start, index) -> {
          accumulator.start();
          forEachPiece(
              start,
              (offset, step, count, first) -> {
                Elements.load(self.memory(), offset, step, self.dtype(), values, count);
                accumulator.add(values, count, first);
              });
          accumulator.finish(index);
        });
  }

  private interface Result {
    void run(long start, long[] index);
  }

  private interface Piece {
    void run(long offset, long step, int count, long first);
  }

  private void forEachPiece(long start, Piece piece) {
    var type = self.type();
    var sizes = gone.stream().mapToLong(type::size).toArray();
    var strides = gone.stream().mapToLong(dim -> type.stride(dim) * type.dtype().bytes()).toArray();
    var seen = new long[1];
    Loops.forEach(
        sizes,
        List.of(strides),
        (offsets, steps, count) -> {
          piece.run(start + offsets[0], steps[0], count, seen[0]);
          seen[0] += count;
        });
  }

  private void forEachResult(Result result) {
    var type = self.type();
    var sizes = kept.stream().mapToLong(type::size).toArray();
    for (long size : sizes) {
      if (size == 0) {
        return;
      }
    }
    var index = new long[sizes.length];
    do {
      long start = 0;
      for (int i = 0; i < index.length; i++) {
        start += index[i] * type.stride(kept.get(i)) * type.dtype().bytes();
      }
      result.run(start, resultIndex(index));
    } while (next(index, sizes));
  }

  private long[] resultIndex(long[] index) {
    if (!keepdim) {
      return index;
    }
    var full = new long[self.type().rank()];
    for (int i = 0; i < index.length; i++) {
      full[kept.get(i)] = index[i];
    }
    return full;
  }

  private static boolean next(long[] index, long[] sizes) {
    for (int i = index.length - 1; i >= 0; i--) {
      if (++index[i] < sizes[i]) {
        return true;
      }
      index[i] = 0;
    }
    return false;
  }
}
