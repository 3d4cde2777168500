package dev.symplan.ir.hlo;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;

/**
 * Computes with single integers that are known when a module is read: with the counters of loops,
 * mostly, which say where a round reads and writes.
 */
final class Scalars {
  private Scalars() {}

  /** {@return the number that an instruction gives; empty if that is not known} */
  static Optional<Bound> fold(HloInstruction instruction, List<Bound> operands) {
    if (!(instruction.shape() instanceof Array shape)
        || !shape.exact()
        || shape.tensor().rank() > 0
        || operands.isEmpty()
        || !operands.stream().allMatch(Scalars::isWhole)) {
      return Optional.empty();
    }
    try {
      return value(instruction, operands)
          .filter(number -> fits(number, shape.dtype()))
          .map(number -> new Bound.Splat(literal(number, shape.dtype()), shape));
    } catch (ArithmeticException e) {
      // Beyond 64 bits, which no counter is.
      return Optional.empty();
    }
  }

  private static boolean isWhole(Bound operand) {
    return operand instanceof Bound.Splat(Arg.Literal number, Array shape)
        && shape.tensor().rank() == 0
        && (number instanceof Arg.Int || number instanceof Arg.Bool);
  }

  private static long number(Bound operand) {
    if (operand instanceof Bound.Splat(Arg.Int(long value), Array _)) {
      return value;
    }
    return operand instanceof Bound.Splat(Arg.Bool(boolean value), Array _) && value ? 1 : 0;
  }

  private static Optional<Long> value(HloInstruction instruction, List<Bound> operands) {
    long first = number(operands.getFirst());
    long last = number(operands.getLast());
    boolean whole = !isBool(operands.getFirst());
    return switch (instruction.opcode()) {
      case "add" -> whole ? Optional.of(Math.addExact(first, last)) : Optional.empty();
      case "subtract" -> whole ? Optional.of(Math.subtractExact(first, last)) : Optional.empty();
      case "multiply" -> whole ? Optional.of(Math.multiplyExact(first, last)) : Optional.empty();
      case "minimum" -> Optional.of(Math.min(first, last));
      case "maximum" -> Optional.of(Math.max(first, last));
      case "convert", "copy" -> operands.size() == 1 ? Optional.of(first) : Optional.empty();
      case "select" ->
          operands.size() == 3
              ? Optional.of(number(operands.get(first == 0 ? 2 : 1)))
              : Optional.empty();
      case "compare" -> compared(instruction, first, last);
      default -> Optional.empty();
    };
  }

  private static boolean isBool(Bound operand) {
    return operand instanceof Bound.Splat(Arg.Literal _, Array shape)
        && shape.dtype() == DType.BOOL;
  }

  private static Optional<Long> compared(HloInstruction instruction, long a, long b) {
    return switch (instruction.attributes().text("direction").orElse("")) {
      case "LT" -> Optional.of(a < b ? 1L : 0L);
      case "LE" -> Optional.of(a <= b ? 1L : 0L);
      case "GT" -> Optional.of(a > b ? 1L : 0L);
      case "GE" -> Optional.of(a >= b ? 1L : 0L);
      case "EQ" -> Optional.of(a == b ? 1L : 0L);
      case "NE" -> Optional.of(a != b ? 1L : 0L);
      default -> Optional.empty();
    };
  }

  /** Smaller types wrap around, and the larger unsigned one compares otherwise. */
  private static boolean fits(long number, DType dtype) {
    return switch (dtype) {
      case BOOL -> number == 0 || number == 1;
      case I32 -> number == (int) number;
      case I64 -> true;
      case U32 -> number >= 0 && number <= 0xFFFF_FFFFL;
      default -> false;
    };
  }

  private static Arg.Literal literal(long number, DType dtype) {
    return dtype == DType.BOOL ? new Arg.Bool(number != 0) : new Arg.Int(number);
  }
}
