package dev.symplan.runtime.host;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.Promotion;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.function.LongBinaryOperator;
import java.util.function.LongUnaryOperator;

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

  static Longs unaryLongs(LongUnaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsLong(in[0][i]);
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

  static Longs binaryLongs(LongBinaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsLong(in[0][i], in[1][i]);
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

  /** Computes in doubles if the result is a float, or bools are made of floats; else in longs. */
  static void run(HostCall call, Doubles doubles, Longs longs, String... operands) {
    if (computesInFloats(call, operands)) {
      runDoubles(call, doubles, operands);
    } else {
      runLongs(call, longs, operands);
    }
  }

  private static boolean computesInFloats(HostCall call, String... operands) {
    var result = call.result().dtype();
    if (result != DType.BOOL) {
      return result.isFloat();
    }
    boolean floats = false;
    for (var operand : operands) {
      floats |=
          switch (call.value(operand)) {
            case Value.Tensor(HostTensor tensor) -> tensor.dtype().isFloat();
            case Value.Constant(Arg arg) -> arg instanceof Arg.Float;
            case Value.Many _ -> false;
          };
    }
    return floats;
  }

  static void runDoubles(HostCall call, Doubles function, String... operands) {
    var dtype = computeType(call, operands);
    boolean compares = !call.result().dtype().isFloat();
    var rows = new ArrayList<HostTensor>();
    var in = new double[operands.length][Loops.CHUNK];
    var slots = new int[operands.length];
    for (int i = 0; i < operands.length; i++) {
      slots[i] = -1;
      if (call.value(operands[i]) instanceof Value.Tensor(HostTensor tensor)) {
        slots[i] = rows.size();
        rows.add(tensor);
      } else {
        // Arithmetic takes a number in f32 even where the tensors are shorter; comparing does not.
        double number = call.number(operands[i]);
        Arrays.fill(
            in[i], compares ? round(number, dtype) : dtype == DType.F64 ? number : (float) number);
      }
    }
    runDoubles(call.result(), function, rows, in, slots, dtype);
  }

  /** Computes {@code function} of tensors alone. */
  static void apply(HostTensor result, Doubles function, HostTensor... operands) {
    var slots = new int[operands.length];
    for (int i = 0; i < slots.length; i++) {
      slots[i] = i;
    }
    runDoubles(
        result,
        function,
        List.of(operands),
        new double[operands.length][Loops.CHUNK],
        slots,
        DType.F64);
  }

  private static void runDoubles(
      HostTensor result,
      Doubles function,
      List<HostTensor> tensors,
      double[][] in,
      int[] slots,
      DType dtype) {
    var out = new double[Loops.CHUNK];
    int last = tensors.size();
    forEach(
        tensors,
        result,
        (offsets, steps, count) -> {
          for (int i = 0; i < slots.length; i++) {
            if (slots[i] >= 0) {
              int slot = slots[i];
              var tensor = tensors.get(slot);
              if (!narrows(tensor.dtype(), dtype)) {
                Elements.load(
                    tensor.memory(), offsets[slot], steps[slot], tensor.dtype(), in[i], count);
              } else {
                Elements.loadAsFloats(
                    tensor.memory(), offsets[slot], steps[slot], tensor.dtype(), in[i], count);
                for (int j = 0; j < count && dtype != DType.F32; j++) {
                  in[i][j] = round(in[i][j], dtype);
                }
              }
            }
          }
          function.run(in, out, count);
          Elements.store(out, count, result.memory(), offsets[last], steps[last], result.dtype());
        });
  }

  static void runLongs(HostCall call, Longs function, String... operands) {
    var in = new long[operands.length][Loops.CHUNK];
    var tensors = new ArrayList<HostTensor>();
    var slots = new int[operands.length];
    for (int i = 0; i < operands.length; i++) {
      slots[i] = -1;
      if (call.value(operands[i]) instanceof Value.Tensor(HostTensor tensor)) {
        slots[i] = tensors.size();
        tensors.add(tensor);
      } else {
        Arrays.fill(
            in[i],
            call.value(operands[i]) instanceof Value.Constant(Arg.Float(double number))
                ? (long) number
                : call.integer(operands[i]));
      }
    }
    var result = call.result();
    var out = new long[Loops.CHUNK];
    int last = tensors.size();
    forEach(
        tensors,
        result,
        (offsets, steps, count) -> {
          for (int i = 0; i < slots.length; i++) {
            if (slots[i] >= 0) {
              int slot = slots[i];
              var tensor = tensors.get(slot);
              Elements.load(
                  tensor.memory(), offsets[slot], steps[slot], tensor.dtype(), in[i], count);
            }
          }
          function.run(in, out, count);
          Elements.store(out, count, result.memory(), offsets[last], steps[last], result.dtype());
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

  /** {@return a number as the type has it} */
  static double round(double value, DType dtype) {
    return switch (dtype) {
      case F32 -> (float) value;
      case BF16 -> Elements.fromBFloat16(Elements.toBFloat16((float) value));
      case F16 -> Float.float16ToFloat(Float.floatToFloat16((float) value));
      default -> value;
    };
  }

  /** {@return the float type that the op computes in} */
  static DType computeType(HostCall call, String... operands) {
    if (call.result().dtype().isFloat()) {
      return call.result().dtype();
    }
    var types = new ArrayList<TensorType>();
    for (var operand : operands) {
      if (call.value(operand) instanceof Value.Tensor(HostTensor tensor)) {
        types.add(tensor.type());
      }
    }
    return Promotion.ofFloats(types);
  }
}
