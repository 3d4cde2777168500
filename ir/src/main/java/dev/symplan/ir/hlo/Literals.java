package dev.symplan.ir.hlo;

import dev.symplan.ir.Arg;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.Optional;

/** Reads the texts of constants. */
final class Literals {
  private Literals() {}

  /** {@return the number that a constant is; absent where it has several elements, or none here} */
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
        case FLOAT -> floating(written);
        case COMPLEX -> Optional.empty();
      };
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  private static Optional<Arg.Literal> floating(String written) {
    return switch (written) {
      case "inf" -> Optional.of(new Arg.Float(Double.POSITIVE_INFINITY));
      case "-inf" -> Optional.of(new Arg.Float(Double.NEGATIVE_INFINITY));
      case "nan", "-nan" -> Optional.of(new Arg.Float(Double.NaN));
      default ->
          written.matches("-?[0-9][0-9.]*([eE][+-]?[0-9]+)?")
              ? Optional.of(new Arg.Float(Double.parseDouble(written)))
              : Optional.empty();
    };
  }
}
