package dev.symplan.ir.hlo;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.Optional;
import java.util.regex.Pattern;

/** Reads the texts of constants. */
final class Literals {
  private static final Pattern NUMBER = Pattern.compile("-?[0-9][0-9.]*([eE][+-]?[0-9]+)?");

  private Literals() {}

  /** {@return the number that a constant is; absent if it has several elements, or none here} */
  static Optional<Arg.Literal> number(String text, Array shape) {
    if (shape.tensor().rank() > 0) {
      return Optional.empty();
    }
    var written = text.strip();
    try {
      return switch (shape.dtype().kind()) {
        case BOOL ->
            switch (written) {
              case "true", "1" -> Optional.of(new Arg.Bool(true));
              case "false", "0" -> Optional.of(new Arg.Bool(false));
              default -> Optional.empty();
            };
        case INTEGER -> Optional.of(new Arg.Int(Long.parseLong(written)));
        case FLOAT -> floating(written, shape.dtype());
        case COMPLEX -> Optional.empty();
      };
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  /** {@return 0 as an element of an array} */
  static Arg.Literal zero(Array shape) {
    return switch (shape.dtype().kind()) {
      case BOOL -> new Arg.Bool(false);
      case INTEGER -> new Arg.Int(0);
      case FLOAT, COMPLEX -> new Arg.Float(0);
    };
  }

  private static Optional<Arg.Literal> floating(String written, DType dtype) {
    return switch (written) {
      case "inf" -> Optional.of(new Arg.Float(Double.POSITIVE_INFINITY));
      case "-inf" -> Optional.of(new Arg.Float(Double.NEGATIVE_INFINITY));
      case "nan", "-nan" -> Optional.of(new Arg.Float(Double.NaN));
      default ->
          NUMBER.matcher(written).matches()
              ? rounded(Double.parseDouble(written), dtype).map(Arg.Float::new)
              : Optional.empty();
    };
  }

  /**
   * {@return the number that the element type has for a text} XLA writes the fewest digits that
   * lead to it, so that the digits alone are another number.
   */
  private static Optional<Double> rounded(double written, DType dtype) {
    return switch (dtype) {
      case F64 -> Optional.of(written);
      case F32 -> Optional.of((double) (float) written);
      case F16 -> Optional.of((double) Float.float16ToFloat(Float.floatToFloat16((float) written)));
      case BF16 -> Optional.of((double) bfloat16((float) written));
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> Optional.empty();
      case I64, I32, I16, I8, U64, U32, U16, U8, BOOL, C32, C64, C128 -> Optional.empty();
    };
  }

  /** Rounds to the nearest, ties to even, as the upper half of a float's bits. */
  private static float bfloat16(float value) {
    int bits = Float.floatToIntBits(value);
    int rounded = bits + 0x7FFF + (bits >>> 16 & 1);
    return Float.intBitsToFloat(rounded & 0xFFFF0000);
  }
}
