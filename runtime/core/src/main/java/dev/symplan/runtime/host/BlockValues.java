package dev.symplan.runtime.host;

import dev.symplan.codegen.expr.Blocks;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.Rounding;
import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;

/** The values of an expression's steps for a block of elements, in f64 or in 64-bit integers. */
sealed interface BlockValues {

  /**
   * {@return memory for the values of steps}
   *
   * @param type what is computed in
   * @param size the most elements of a block
   */
  static BlockValues of(DType type, int steps, int size) {
    return type.isFloat()
        ? new Doubles(type, new double[steps][], size)
        : new Longs(new long[steps][], size);
  }

  /** Makes all values of a step a number. */
  void fill(int step, Expr number);

  /** Reads operands; wider types are rounded to what is computed in where {@code rounds}. */
  void load(int step, HostTensor tensor, long offset, long stride, int n, boolean rounds);

  void store(int step, HostTensor tensor, long offset, long stride, int n);

  /** Computes a primitive of single elements. */
  void apply(Primitive primitive, int a, int b, int c, int to, int n);

  /** Chooses {@code x} where {@code a} compares so with {@code b}, else {@code y}. */
  void select(Primitive compare, int a, int b, int x, int y, int to, int n);

  /** Has a fold or scan begin with no elements. */
  void start(Primitive primitive, int to);

  /**
   * Takes elements into a fold, whose only value is its first, or has a scan go on with them.
   *
   * @param first the position of the first one in the row
   */
  void take(Primitive primitive, int from, int to, int n, long first);

  /** Makes the first value of a step that of all elements. */
  void spread(int step, int n);

  /** In f64. */
  record Doubles(DType type, double[][] values, int size) implements BlockValues {

    private double[] at(int step) {
      if (values[step] == null) {
        // Folds keep a second number, and scans one behind the elements.
        values[step] = new double[Math.max(2, size + 1)];
      }
      return values[step];
    }

    @Override
    public void fill(int step, Expr number) {
      Arrays.fill(at(step), Blocks.number(number));
    }

    @Override
    public void load(int step, HostTensor tensor, long offset, long stride, int n, boolean rounds) {
      var from = tensor.dtype();
      var into = at(step);
      if (!rounds || from == type || type == DType.F64 || from.bytes() < type.bytes()) {
        Elements.load(tensor.memory(), offset, stride, from, into, n);
        return;
      }
      Elements.loadAsFloats(tensor.memory(), offset, stride, from, into, n);
      for (int i = 0; i < n && type != DType.F32; i++) {
        into[i] = Rounding.round(into[i], type);
      }
    }

    @Override
    public void store(int step, HostTensor tensor, long offset, long stride, int n) {
      Elements.store(at(step), n, tensor.memory(), offset, stride, tensor.dtype());
    }

    @Override
    public void apply(Primitive primitive, int a, int b, int c, int to, int n) {
      Blocks.doubles(primitive, type, at(a), at(b), at(c), at(to), n);
    }

    @Override
    public void select(Primitive compare, int a, int b, int x, int y, int to, int n) {
      Blocks.select(compare, at(a), at(b), at(x), at(y), at(to), n);
    }

    @Override
    public void start(Primitive primitive, int to) {
      at(to)[primitive.scans() ? size : 0] =
          switch (primitive) {
            case PROD, ALL, CUMPROD -> 1;
            case AMAX -> Double.NEGATIVE_INFINITY;
            case AMIN -> Double.POSITIVE_INFINITY;
            case ARGMAX, ARGMIN -> -1;
            default -> 0;
          };
    }

    @Override
    public void take(Primitive primitive, int from, int to, int n, long first) {
      if (primitive.scans()) {
        at(to)[size] = Blocks.scan(primitive, at(to)[size], at(from), at(to), n);
      } else {
        Blocks.fold(primitive, at(from), at(to), n, first);
      }
    }

    @Override
    public void spread(int step, int n) {
      Arrays.fill(at(step), 0, n, at(step)[0]);
    }
  }

  /** In 64-bit integers. */
  record Longs(long[][] values, int size) implements BlockValues {

    private long[] at(int step) {
      if (values[step] == null) {
        values[step] = new long[Math.max(2, size + 1)];
      }
      return values[step];
    }

    @Override
    public void fill(int step, Expr number) {
      Arrays.fill(at(step), Blocks.whole(number));
    }

    @Override
    public void load(int step, HostTensor tensor, long offset, long stride, int n, boolean rounds) {
      Elements.load(tensor.memory(), offset, stride, tensor.dtype(), at(step), n);
    }

    @Override
    public void store(int step, HostTensor tensor, long offset, long stride, int n) {
      Elements.store(at(step), n, tensor.memory(), offset, stride, tensor.dtype());
    }

    @Override
    public void apply(Primitive primitive, int a, int b, int c, int to, int n) {
      Blocks.longs(primitive, at(a), at(b), at(c), at(to), n);
    }

    @Override
    public void select(Primitive compare, int a, int b, int x, int y, int to, int n) {
      Blocks.select(compare, at(a), at(b), at(x), at(y), at(to), n);
    }

    @Override
    public void start(Primitive primitive, int to) {
      at(to)[primitive.scans() ? size : 0] =
          switch (primitive) {
            case PROD, ALL, CUMPROD -> 1;
            case AMAX -> Long.MIN_VALUE;
            case AMIN -> Long.MAX_VALUE;
            case ARGMAX, ARGMIN -> -1;
            default -> 0;
          };
    }

    @Override
    public void take(Primitive primitive, int from, int to, int n, long first) {
      if (primitive.scans()) {
        at(to)[size] = Blocks.scan(primitive, at(to)[size], at(from), at(to), n);
      } else {
        Blocks.fold(primitive, at(from), at(to), n, first);
      }
    }

    @Override
    public void spread(int step, int n) {
      Arrays.fill(at(step), 0, n, at(step)[0]);
    }
  }
}
