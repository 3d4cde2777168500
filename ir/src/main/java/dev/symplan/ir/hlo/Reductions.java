package dev.symplan.ir.hlo;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.Optional;
import java.util.stream.LongStream;

/** Makes PyTorch's reductions of {@code reduce}. */
final class Reductions {
  private final GraphEmitter emitter;

  Reductions(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /**
   * {@return the result; absent if no op of PyTorch computes the same}
   *
   * @param opcode of the computation that combines two elements
   * @param start the initial value of the reduction
   */
  Optional<Value> read(
      HloInstruction reduce, String opcode, Value operand, Bound start, Array shape) {
    var dtype = operand.tensor().dtype();
    if (shape.dtype() != dtype
        || !(start instanceof Bound.Splat(Arg.Literal number, Array _))
        || !isNeutral(opcode, dtype, number)) {
      return Optional.empty();
    }
    long[] dims = reduce.attributes().integers("dimensions").toArray();
    int rank = operand.tensor().rank();
    if (LongStream.of(dims).anyMatch(dim -> dim < 0 || dim >= rank)
        || LongStream.of(dims).distinct().count() != dims.length) {
      throw new IllegalArgumentException(
          "dimensions must be below %s, and name each at most once".formatted(rank));
    }
    if (dims.length == 0) {
      return Optional.of(emitter.fresh(reduce.name(), shape, "aten::clone", new Arg.Ref(operand)));
    }
    boolean bool = dtype == DType.BOOL;
    var ref = new Arg.Ref(operand);
    var list = Arg.Seq.of(dims);
    var keep = new Arg.Bool(false);
    return switch (opcode) {
      case "add" ->
          bool
              ? Optional.empty()
              : Optional.of(
                  emitter.fresh(
                      reduce.name(),
                      shape,
                      "aten::sum.dim_IntList",
                      ref,
                      list,
                      keep,
                      new Arg.Dtype(dtype)));
      case "maximum" ->
          Optional.of(emitter.fresh(reduce.name(), shape, "aten::amax", ref, list, keep));
      case "minimum" ->
          Optional.of(emitter.fresh(reduce.name(), shape, "aten::amin", ref, list, keep));
      case "and", "or" ->
          bool
              ? Optional.of(
                  emitter.fresh(
                      reduce.name(),
                      shape,
                      opcode.equals("and") ? "aten::all.dims" : "aten::any.dims",
                      ref,
                      list,
                      keep))
              : Optional.empty();
      default -> Optional.empty();
    };
  }

  /** {@return whether combining an element with a number leaves every element as it is} */
  static boolean isNeutral(String opcode, DType dtype, Arg.Literal number) {
    double value = number.number().orElse(Double.NaN).doubleValue();
    return switch (opcode) {
      case "add" -> value == 0;
      case "maximum" -> value == lowest(dtype);
      case "minimum" -> value == highest(dtype);
      case "and" -> dtype == DType.BOOL && value == 1;
      case "or" -> dtype == DType.BOOL && value == 0;
      default -> false;
    };
  }

  private static double lowest(DType dtype) {
    return switch (dtype) {
      case F64, F32, F16, BF16 -> Double.NEGATIVE_INFINITY;
      case I64 -> Long.MIN_VALUE;
      case I32 -> Integer.MIN_VALUE;
      case I16 -> Short.MIN_VALUE;
      case I8 -> Byte.MIN_VALUE;
      case U64, U32, U16, U8, BOOL -> 0;
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, C32, C64, C128 -> Double.NaN;
    };
  }

  private static double highest(DType dtype) {
    return switch (dtype) {
      case F64, F32, F16, BF16 -> Double.POSITIVE_INFINITY;
      case I32 -> Integer.MAX_VALUE;
      case I16 -> Short.MAX_VALUE;
      case I8 -> Byte.MAX_VALUE;
      case U32 -> 0xFFFF_FFFFL;
      case U16 -> 0xFFFF;
      case U8 -> 0xFF;
      case BOOL -> 1;
      // A double does not hold the largest ones exactly.
      case I64, U64 -> Double.NaN;
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, C32, C64, C128 -> Double.NaN;
    };
  }
}
