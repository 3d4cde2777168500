package dev.symplan.codegen.cuda;

import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.cuda.Expressions.Expression;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.Promotion;
import java.util.ArrayList;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * One element of an elementwise op's result as C++.
 *
 * <p>As in PyTorch, 16-bit floats are computed with in f32, integers in 64 bits, and operands of
 * other types are rounded to that of the result first, or to the type that they are compared in.
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
    var in = computedIn(part, type);
    var computed = CTypes.computed(in);
    var text = computed.equals("long long") ? ofIntegers(expression, part) : expression.floats();
    if (text.isEmpty()) {
      throw Parts.unsupported(
          part,
          "%s of %s has no CUDA implementation".formatted(part.def().name(), type.shortName()));
    }
    var matcher = PARAM.matcher(text);
    var filled = new StringBuilder();
    while (matcher.find()) {
      matcher.appendReplacement(filled, argument(part, matcher.group(1), in, values));
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

  /**
   * The type that operands are rounded to: that of a float result, or what they are compared in.
   */
  private static DType computedIn(Part part, DType result) {
    Parts.checkComputes(part, result);
    boolean floats = false;
    var tensors = new ArrayList<TensorType>();
    for (var arg : part.args()) {
      switch (arg) {
        case Operand.Tensor _, Operand.Passed _ -> {
          var type = Parts.typeOf(arg);
          Parts.checkComputes(part, type.dtype());
          floats |= type.dtype().isFloat();
          tensors.add(type);
        }
        case Operand.Constant(var value) -> floats |= value instanceof Arg.Float;
        case Operand.Many _ ->
            throw Parts.unsupported(part, part.def().name() + " with a list of tensors");
      }
    }
    if (result.isFloat()) {
      return result;
    }
    return floats && result == DType.BOOL ? Promotion.ofFloats(tensors) : DType.I64;
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
      Part part, String param, DType in, Function<Operand, String> values) {
    var computed = CTypes.computed(in);
    if (param.equals("C")) {
      return computed;
    }
    var operand = Parts.argument(part, param).orElseThrow();
    return switch (operand) {
      case Operand.Tensor _, Operand.Passed _ -> {
        var from = Parts.typeOf(operand).dtype();
        var value = values.apply(operand);
        yield isShort(in) && from != in
            ? rounded(in, value, CTypes.computed(from))
            : "(%s)%s".formatted(computed, value);
      }
      case Operand.Constant(var value) -> {
        var literal =
            literal(value, computed)
                .orElseThrow(
                    () ->
                        Parts.unsupported(
                            part, "%s with %s = %s".formatted(part.def().name(), param, value)));
        // Arithmetic takes a number in f32 even where the tensors are shorter; comparing does not.
        boolean compares = !Parts.typeOf(Parts.result(part)).dtype().isFloat();
        yield compares && isShort(in) ? rounded(in, literal, computed) : literal;
      }
      case Operand.Many _ -> throw new IllegalStateException("a list");
    };
  }

  /** Whether values of a type are computed with in a longer one. */
  private static boolean isShort(DType dtype) {
    return dtype == DType.F16 || dtype == DType.BF16;
  }

  private static Optional<String> literal(Arg arg, String computed) {
    return switch (arg) {
      case Arg.Int(long value) ->
          Optional.of(
              computed.equals("long long")
                  ? Literals.integer(value)
                  : Literals.floating((double) value, computed.equals("double")));
      case Arg.Float(double value) ->
          Optional.of(
              computed.equals("long long")
                  ? Literals.integer((long) value)
                  : Literals.floating(value, computed.equals("double")));
      case Arg.Bool(boolean value) -> Optional.of(value ? "1" : "0");
      case Arg.Ref _, Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _, Arg.None _ ->
          Optional.empty();
    };
  }
}
