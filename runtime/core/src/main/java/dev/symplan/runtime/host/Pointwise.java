package dev.symplan.runtime.host;

import dev.symplan.codegen.expr.Rounding;
import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;

/**
 * The engine of elementwise ops.
 *
 * <p>Floats are computed in double and rounded once to f32, then to the result's type, which is
 * PyTorch's result for its own computation in f32 or a neighbour of it; integers and bools in 64
 * bits. Operands of a wider type than the op computes in are rounded to that first.
 */
final class Pointwise {

  /** What is done with a row of doubles; {@code in} has a row for each operand. */
  @FunctionalInterface
  interface Doubles {
    void run(double[][] in, double[] out, int count);
  }

  /** What is done with a row of longs. */
  @FunctionalInterface
  interface Longs {
    void run(long[][] in, long[] out, int count);
  }

  /** A function of three numbers. */
  @FunctionalInterface
  interface Ternary {
    double apply(double a, double b, double c);
  }

  private Pointwise() {}

  static Doubles unary(DoubleUnaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsDouble(in[0][i]);
      }
    };
  }

  static Doubles binary(DoubleBinaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsDouble(in[0][i], in[1][i]);
      }
    };
  }

  static Doubles ternary(Ternary f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.apply(in[0][i], in[1][i], in[2][i]);
      }
    };
  }

  /** Computes {@code function} of tensors alone. */
  static void apply(HostTensor result, Doubles function, HostTensor... operands) {
    run(result, function, List.of(operands), Loops.CHUNK, DType.F64);
  }

  /**
   * Computes {@code function} of tensors.
   *
   * @param size the elements of a block at most
   * @param type what operands are rounded to first
   */
  static void run(
      HostTensor result, Doubles function, List<HostTensor> tensors, int size, DType type) {
    int count = tensors.size();
    var in = new double[count][size];
    var out = new double[size];
    forEach(
        tensors,
        result,
        (offsets, steps, n) -> {
          for (int i = 0; i < count; i++) {
            load(tensors.get(i), offsets[i], steps[i], in[i], n, type);
          }
          function.run(in, out, n);
          Elements.store(out, n, result.memory(), offsets[count], steps[count], result.dtype());
        });
  }

  private static void load(
      HostTensor tensor, long offset, long step, double[] into, int count, DType type) {
    if (!narrows(tensor.dtype(), type)) {
      Elements.load(tensor.memory(), offset, step, tensor.dtype(), into, count);
      return;
    }
    Elements.loadAsFloats(tensor.memory(), offset, step, tensor.dtype(), into, count);
    for (int i = 0; i < count && type != DType.F32; i++) {
      into[i] = Rounding.round(into[i], type);
    }
  }

  /** Computes {@code function} of tensors of integers. */
  static void run(HostTensor result, Longs function, List<HostTensor> tensors, int size) {
    int count = tensors.size();
    var in = new long[count][size];
    var out = new long[size];
    forEach(
        tensors,
        result,
        (offsets, steps, n) -> {
          for (int i = 0; i < count; i++) {
            var tensor = tensors.get(i);
            Elements.load(tensor.memory(), offsets[i], steps[i], tensor.dtype(), in[i], n);
          }
          function.run(in, out, n);
          Elements.store(out, n, result.memory(), offsets[count], steps[count], result.dtype());
        });
  }

  /** The operands, broadcast to the result, and the result behind them. */
  private static void forEach(List<HostTensor> operands, HostTensor result, Loops.Row row) {
    var sizes = result.type().sizes().toArray();
    var strides = new ArrayList<long[]>();
    for (var operand : operands) {
      strides.add(Loops.byteStrides(operand.type(), sizes));
    }
    strides.add(Loops.byteStrides(result.type(), sizes));
    Loops.forEach(sizes, strides, row);
  }

  /** {@return whether values of {@code from} may have to be rounded to be of {@code to}} */
  private static boolean narrows(DType from, DType to) {
    return from != to && to != DType.F64 && from.bytes() >= to.bytes();
  }
}
