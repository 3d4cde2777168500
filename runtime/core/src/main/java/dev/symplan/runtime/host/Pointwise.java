package dev.symplan.runtime.host;

import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;

/** Functions of the elements of tensors, in double. */
final class Pointwise {

  /** The work on a row of doubles; {@code in} has a row for each operand. */
  @FunctionalInterface
  interface Doubles {
    void run(double[][] in, double[] out, int count);
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

  /** Computes {@code function} of tensors. */
  static void apply(HostTensor result, Doubles function, HostTensor... operands) {
    int count = operands.length;
    var in = new double[count][Loops.CHUNK];
    var out = new double[Loops.CHUNK];
    forEach(
        List.of(operands),
        result,
        (offsets, steps, n) -> {
          for (int i = 0; i < count; i++) {
            var tensor = operands[i];
            Elements.load(tensor.memory(), offsets[i], steps[i], tensor.dtype(), in[i], n);
          }
          function.run(in, out, n);
          Elements.store(out, n, result.memory(), offsets[count], steps[count], result.dtype());
        });
  }

  /** The operands, broadcast to the result, and the result after them. */
  static void forEach(List<HostTensor> operands, HostTensor result, Loops.Row row) {
    var sizes = result.type().sizes().toArray();
    var strides = new ArrayList<long[]>();
    for (var operand : operands) {
      strides.add(Loops.byteStrides(operand.type(), sizes));
    }
    strides.add(Loops.byteStrides(result.type(), sizes));
    Loops.forEach(sizes, strides, row);
  }
}
