package dev.symplan.runtime.host;

import dev.symplan.codegen.expr.Blocks;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.Rounding;
import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.stream.Stream;

/**
 * The values of an expression's steps for a block of elements, some rows one after another, and
 * those that there is one of for each row.
 *
 * @param <A> the memory that keeps them: f64 or 64-bit integers
 */
abstract sealed class BlockValues<A> {
  private final Blocks<A> blocks;
  private final List<A> values;
  private final int rows;

  /** Where scans keep what the elements before gave. */
  private final int last;

  private BlockValues(Blocks<A> blocks, int count, int rows, int size) {
    this.blocks = blocks;
    this.rows = rows;
    // Folds may keep two numbers for each row.
    this.last = Math.max(2 * rows, size);
    this.values = Stream.generate(() -> blocks.allocate(last + 1)).limit(count).toList();
  }

  /**
   * {@return memory for values}
   *
   * @param type the type in which they are computed
   * @param count how many values there are
   * @param rows the most rows of a block
   * @param size the most elements of a block
   */
  static BlockValues<?> of(DType type, int count, int rows, int size) {
    return type.isFloat()
        ? new Doubles(type, count, rows, size)
        : new Longs(type, count, rows, size);
  }

  final A at(int value) {
    return values.get(value);
  }

  /** Makes all elements of a value a number. */
  void fill(int value, Expr number) {
    blocks.fill(at(value), number);
  }

  /**
   * Reads operands, rounded to what is computed in.
   *
   * @param first the first element that is read into
   */
  abstract void load(int value, int first, HostTensor tensor, long offset, long stride, int n);

  /**
   * Writes a value.
   *
   * @param first the first element that is written
   */
  abstract void store(int value, int first, HostTensor tensor, long offset, long stride, int n);

  /** Computes a primitive of single elements. */
  void apply(Primitive primitive, int a, int b, int c, int to, int n) {
    blocks.apply(primitive, at(a), at(b), at(c), at(to), n);
  }

  /** Chooses {@code x} where {@code a} compares so with {@code b}, else {@code y}. */
  void select(Primitive.Comparison compare, int a, int b, int x, int y, int to, int n) {
    blocks.select(compare, at(a), at(b), at(x), at(y), at(to), n);
  }

  /** Has the folds of some rows begin with no elements. */
  void start(Primitive.Fold fold, int to, int count) {
    for (int row = 0; row < count; row++) {
      blocks.start(fold, at(to), row);
    }
  }

  /**
   * Takes elements of rows into folds.
   *
   * @param n elements of each row
   * @param position of the first one in its row
   */
  void fold(Primitive.Fold fold, int from, int to, int count, int n, long position) {
    for (int row = 0; row < count; row++) {
      blocks.fold(fold, at(from), row * n, n, at(to), row, rows + row, position);
    }
  }

  /** Has scans begin, or go on where a row is more than a block. */
  void scan(Primitive.Scan scan, int from, int to, int count, int n, long position) {
    for (int row = 0; row < count; row++) {
      if (position == 0) {
        blocks.start(scan.fold(), at(to), last);
      }
      blocks.scan(scan, at(from), row * n, n, at(to), last);
    }
  }

  /** Makes what is one for a row that of each of its elements. */
  void spread(int from, int to, int count, int n) {
    for (int row = 0; row < count; row++) {
      blocks.spread(at(from), row, at(to), row * n, n);
    }
  }

  private static final class Doubles extends BlockValues<double[]> {
    private final DType type;

    @SuppressWarnings("unchecked") // Floats are computed with in f64.
    Doubles(DType type, int count, int rows, int size) {
      super((Blocks<double[]>) Blocks.of(type), count, rows, size);
      this.type = type;
    }

    @Override
    void load(int value, int first, HostTensor tensor, long offset, long stride, int n) {
      var from = tensor.dtype();
      var into = at(value);
      if (from == type || type == DType.F64 || from.bytes() < type.bytes()) {
        Elements.load(tensor.memory(), offset, stride, from, into, first, n);
        return;
      }
      Elements.loadAsFloats(tensor.memory(), offset, stride, from, into, first, n);
      for (int i = first; i < first + n && type != DType.F32; i++) {
        into[i] = Rounding.round(into[i], type);
      }
    }

    @Override
    void store(int value, int first, HostTensor tensor, long offset, long stride, int n) {
      Elements.store(at(value), first, n, tensor.memory(), offset, stride, tensor.dtype());
    }
  }

  private static final class Longs extends BlockValues<long[]> {

    @SuppressWarnings("unchecked") // Integers are computed with in 64 bits.
    Longs(DType type, int count, int rows, int size) {
      super((Blocks<long[]>) Blocks.of(type), count, rows, size);
    }

    @Override
    void load(int value, int first, HostTensor tensor, long offset, long stride, int n) {
      Elements.load(tensor.memory(), offset, stride, tensor.dtype(), at(value), first, n);
    }

    @Override
    void store(int value, int first, HostTensor tensor, long offset, long stride, int n) {
      Elements.store(at(value), first, n, tensor.memory(), offset, stride, tensor.dtype());
    }
  }
}
