package dev.symplan.codegen.cuda;

import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.cuda.Expressions.Expression;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * One element of an elementwise op's result as C++.
 *
 * <p>As in PyTorch, 16-bit floats are computed with in f32, integers in 64 bits, and operands of
 * wider types are rounded to that of the result first.
 */
final class Pointwise {
  private static final Pattern PARAM = Pattern.compile("\\{(\\w+)\\}");

  private Pointwise() {}

  /** {@return whether an op is elementwise and has an implementation} */
  static boolean supports(Part part) {
    return Expressions.find(part.def().name().toString()).isPresent();
  }

  /**
   * {@return an expression of the type that the result's elements are computed with, rounded as if
   * it had been in memory}
   *
   * @param values an operand that is a tensor, in the type that it is computed with
   * @throws UnsupportedOnGpu when the op has no CUDA implementation
   */
  static String value(Part part, Function<Operand, String> values) {
    if (part.def().name().base().equals("aten::gelu")
        && Parts.argument(part, "approximate").orElseThrow()
            instanceof Operand.Constant(Arg.Str(String how))
        && !how.equals("none")) {
      throw Parts.unsupported(part, "%s by %s".formatted(part.def().name(), how));
    }
    var expression =
        Expressions.find(part.def().name().toString()).orElseThrow(() -> Parts.unsupported(part));
    var type = Parts.typeOf(Parts.result(part)).dtype();
    var computed = computedIn(part, type);
    var text = computed.equals("long long") ? ofIntegers(expression, part) : expression.floats();
    if (text.isEmpty()) {
      throw Parts.unsupported(
          part,
          "%s of %s has no CUDA implementation".formatted(part.def().name(), type.shortName()));
    }
    var matcher = PARAM.matcher(text);
    var filled = new StringBuilder();
    while (matcher.find()) {
      matcher.appendReplacement(filled, argument(part, matcher.group(1), computed, values));
    }
    matcher.appendTail(filled);
    return rounded(type, "((%s)(%s))".formatted(computed, filled), computed);
  }

  private static String ofIntegers(Expression expression, Part part) {
    boolean bool = Parts.typeOf(Parts.result(part)).dtype() == DType.BOOL;
    return expression.integers().equals("{self!}")
        ? (bool ? "{self} == 0" : "~{self}")
        : expression.integers();
  }

  /** The type that PyTorch computes in: float for 16-bit floats, 64 bits for integers. */
  private static String computedIn(Part part, DType result) {
    Parts.checkComputes(part, result);
    boolean floats = result.isFloat();
    boolean doubles = result == DType.F64;
    for (var arg : part.args()) {
      switch (arg) {
        case Operand.Tensor _, Operand.Passed _ -> {
          var dtype = Parts.typeOf(arg).dtype();
          Parts.checkComputes(part, dtype);
          floats |= dtype.isFloat();
          doubles |= dtype == DType.F64 && !result.isFloat();
        }
        case Operand.Constant(var value) -> floats |= value instanceof Arg.Float;
        case Operand.Many _ ->
            throw Parts.unsupported(part, part.def().name() + " with a list of tensors");
      }
    }
    return doubles ? "double" : floats ? "float" : "long long";
  }

  /** {@return an expression as a value of a type has it, in what such values are computed with} */
  static String rounded(DType type, String value, String computed) {
    return switch (type) {
      case F16 -> "from_f16(to_f16((float)" + value + "))";
      case BF16 -> "from_bf16(to_bf16((float)" + value + "))";
      case F64, F32 -> "(" + CTypes.computed(type) + ")" + value;
      case BOOL -> "(" + value + " != 0)";
      default ->
          "(%s)(%s)%s"
              .formatted(
                  CTypes.computed(type),
                  CTypes.stored(type),
                  computed.equals("long long") ? value : "(long long)" + value);
    };
  }

  private static String argument(
      Part part, String param, String computed, Function<Operand, String> values) {
    if (param.equals("C")) {
      return computed;
    }
    var operand = Parts.argument(part, param).orElseThrow();
    return switch (operand) {
      case Operand.Tensor _, Operand.Passed _ -> {
        var result = Parts.typeOf(Parts.result(part)).dtype();
        var value = values.apply(operand);
        yield narrows(Parts.typeOf(operand).dtype(), result)
            ? rounded(result, value, CTypes.computed(Parts.typeOf(operand).dtype()))
            : "(%s)%s".formatted(computed, value);
      }
      case Operand.Constant(var value) ->
          literal(value, computed)
              .orElseThrow(
                  () ->
                      Parts.unsupported(
                          part, "%s with %s = %s".formatted(part.def().name(), param, value)));
      case Operand.Many _ -> throw new IllegalStateException("a list");
    };
  }

  /** Whether a 16-bit result is computed from values that first are rounded to its type. */
  private static boolean narrows(DType from, DType to) {
    return to.isFloat()
        && to.bytes() == 2
        && (from == DType.F32 || from == DType.F64 || !from.isFloat());
  }

  private static Optional<String> literal(Arg arg, String computed) {
    return switch (arg) {
      case Arg.Int(long value) ->
          Optional.of(
              computed.equals("long long")
                  ? Literals.integer(value)
                  : Literals.floating((double) value, computed.equals("double")));
      case Arg.Float(double value) ->
          Optional.of(Literals.floating(value, computed.equals("double")));
      case Arg.Bool(boolean value) -> Optional.of(value ? "1" : "0");
      case Arg.Ref _, Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _, Arg.None _ ->
          Optional.empty();
    };
  }
}
