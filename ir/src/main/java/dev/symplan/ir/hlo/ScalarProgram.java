package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Carries out a computation that compares and picks single numbers, such as the one by which a sort
 * orders. A number is its bits: those of a {@code float}, of an integer, or 0 and 1.
 */
final class ScalarProgram {
  /** Constants with which comparisons treat zeros and NaN alike, and turn bits into integers. */
  private static final ImmutableSet<Long> CONSTANTS =
      ImmutableSet.of(0L, 1L, (long) Integer.MAX_VALUE, (long) Integer.MIN_VALUE, bits(Float.NaN));

  private final HloComputation computation;

  ScalarProgram(HloComputation computation) {
    this.computation = computation;
  }

  static long bits(float value) {
    return Float.floatToIntBits(value);
  }

  /** {@return the result of the root: a number, or the parts of a tuple; empty if not known} */
  Optional<long[]> run(long... arguments) {
    Map<String, Long> known = new HashMap<>();
    var types = new HashMap<String, DType>();
    for (var instruction : computation.instructions()) {
      if (instruction == computation.root() && instruction.opcode().equals("tuple")) {
        break;
      }
      if (!(instruction.shape() instanceof Array shape) || shape.tensor().rank() > 0) {
        return Optional.empty();
      }
      types.put(instruction.name(), shape.dtype());
      var value = value(instruction, shape, known, types, arguments);
      if (value.isEmpty()) {
        return Optional.empty();
      }
      known.put(instruction.name(), value.get());
    }
    var root = computation.root();
    var names = root.opcode().equals("tuple") ? root.operands() : java.util.List.of(root.name());
    var given = new long[names.size()];
    for (int i = 0; i < given.length; i++) {
      @Nullable Long value = known.get(names.get(i));
      if (value == null) {
        return Optional.empty();
      }
      given[i] = value;
    }
    return Optional.of(given);
  }

  private static Optional<Long> value(
      HloInstruction instruction,
      Array shape,
      Map<String, Long> known,
      Map<String, DType> types,
      long... arguments) {
    var operands = instruction.operands();
    if (!known.keySet().containsAll(operands)) {
      return Optional.empty();
    }
    var at = operands.stream().mapToLong(known::get).toArray();
    return switch (instruction.opcode()) {
      case "parameter" ->
          SourceTables.number(instruction.literal())
              .filter(number -> number < arguments.length)
              .map(number -> arguments[number]);
      case "constant" -> constant(instruction, shape);
      case "compare" ->
          at.length == 2
              ? compared(
                  instruction, types.getOrDefault(operands.getFirst(), DType.C64), at[0], at[1])
              : Optional.empty();
      case "select" -> at.length == 3 ? Optional.of(at[at[0] == 0 ? 2 : 1]) : Optional.empty();
      case "bitcast", "bitcast-convert" ->
          at.length == 1 && shape.dtype().bytes() == 4
              ? Optional.of((long) (int) at[0])
              : Optional.empty();
      case "and" -> at.length == 2 ? Optional.of(at[0] & at[1]) : Optional.empty();
      case "or" -> at.length == 2 ? Optional.of(at[0] | at[1]) : Optional.empty();
      case "xor" -> at.length == 2 ? Optional.of(at[0] ^ at[1]) : Optional.empty();
      case "not" -> shape.dtype() == DType.BOOL ? Optional.of(1 - at[0]) : Optional.empty();
      case "subtract" ->
          at.length == 2 && shape.dtype() == DType.I32
              ? Optional.of((long) ((int) at[0] - (int) at[1]))
              : Optional.empty();
      default -> Optional.empty();
    };
  }

  private static Optional<Long> constant(HloInstruction instruction, Array shape) {
    var number = Literals.number(instruction.literal(), shape);
    Optional<Long> bits =
        number.flatMap(
            literal ->
                switch (literal) {
                  case Arg.Bool(boolean value) -> Optional.of(value ? 1L : 0L);
                  case Arg.Int(long value) -> Optional.of(value);
                  case Arg.Float(double value) when shape.dtype() == DType.F32 ->
                      Optional.of(bits((float) value));
                  default -> Optional.empty();
                });
    return bits.filter(CONSTANTS::contains);
  }

  private static Optional<Long> compared(
      HloInstruction instruction, DType dtype, long left, long right) {
    boolean total = instruction.attributes().text("type").orElse("").equals("TOTALORDER");
    boolean less;
    boolean equal;
    switch (dtype) {
      case F32 -> {
        float a = Float.intBitsToFloat((int) left);
        float b = Float.intBitsToFloat((int) right);
        less = total ? Float.compare(a, b) < 0 : a < b;
        equal = total ? Float.compare(a, b) == 0 : a == b;
        if (!total && (Float.isNaN(a) || Float.isNaN(b))) {
          boolean different = instruction.attributes().text("direction").orElse("").equals("NE");
          return Optional.of(different ? 1L : 0L);
        }
      }
      case I32, I64, BOOL -> {
        less = left < right;
        equal = left == right;
      }
      case U32 -> {
        less = Long.compareUnsigned(left & 0xFFFF_FFFFL, right & 0xFFFF_FFFFL) < 0;
        equal = left == right;
      }
      default -> {
        return Optional.empty();
      }
    }
    return switch (instruction.attributes().text("direction").orElse("")) {
      case "LT" -> Optional.of(less ? 1L : 0L);
      case "LE" -> Optional.of(less || equal ? 1L : 0L);
      case "GT" -> Optional.of(less || equal ? 0L : 1L);
      case "GE" -> Optional.of(less ? 0L : 1L);
      case "EQ" -> Optional.of(equal ? 1L : 0L);
      case "NE" -> Optional.of(equal ? 0L : 1L);
      default -> Optional.empty();
    };
  }
}
