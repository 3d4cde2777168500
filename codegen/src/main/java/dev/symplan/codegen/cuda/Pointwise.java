package dev.symplan.codegen.cuda;

import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.cuda.CudaExpr.NoCudaForm;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpDef;
import java.util.function.Function;

/**
 * One element of an elementwise op's result as C++.
 *
 * <p>As in PyTorch, 16-bit floats are computed with in f32, integers in 64 bits, and operands of
 * other types are rounded to that of the result first, or to the type that they are compared in.
 */
final class Pointwise {
  private Pointwise() {}

  /** {@return whether an op is elementwise and has an implementation} */
  static boolean supports(Part part) {
    return supports(part.def());
  }

  static boolean supports(OpDef def) {
    var name = def.name().toString();
    return Expressions.find(name).isPresent() && !Expressions.isByRow(name);
  }

  /** {@return whether an op does nothing but copy} */
  static boolean copies(OpDef def) {
    return Expressions.get(def.name().toString()).getFirst() instanceof Expr.Param;
  }

  /**
   * {@return an expression of the type that the result's elements are computed with, rounded as if
   * it had been in memory}
   *
   * @param values an operand that is a tensor, in the type that it is computed with
   * @throws UnsupportedOnGpu when the op has no CUDA implementation
   */
  static String value(Part part, Function<Operand, String> values) {
    var exprs =
        Expressions.find(part.def().name().toString()).orElseThrow(() -> Parts.unsupported(part));
    var type = Parts.typeOf(Parts.result(part)).dtype();
    Parts.checkComputes(part, type);
    var call = new PartTypes(part, Parts.typeOf(Parts.result(part)).numel());
    call.dtypes().forEach(dtype -> Parts.checkComputes(part, dtype));
    var binding = Parts.bind(part, exprs, call);
    var in = binding.computedIn();
    var computed = CTypes.computed(in);
    try {
      var expr = binding.results().getFirst();
      var text =
          SpecialText.in(
              in, CudaExpr.print(expr, computed, param -> operand(part, param, in, values)));
      if (expr instanceof Expr.Param && in == type) {
        // Operands are rounded already.
        return text;
      }
      return rounded(type, "((%s)(%s))".formatted(computed, text), computed);
    } catch (NoCudaForm e) {
      throw Parts.unsupported(
          part,
          "%s of %s has no CUDA implementation".formatted(part.def().name(), type.shortName()));
    }
  }

  private static String operand(
      Part part, String param, DType in, Function<Operand, String> values) {
    var operand = Parts.argument(part, param).orElseThrow();
    var from = Parts.typeOf(operand).dtype();
    var value = values.apply(operand);
    if (Parts.typeOf(Parts.result(part)).dtype() == DType.U64 && from.isFloat() && !in.isFloat()) {
      return unsigned(value);
    }
    return isShort(in) && from != in
        ? rounded(in, value, CTypes.computed(from))
        : "(%s)%s".formatted(CTypes.computed(in), value);
  }

  /** {@return a float as an integer of 64 bits, which may be too large for one with a sign} */
  private static String unsigned(String value) {
    return "(long long)(%1$s < 0 ? (unsigned long long)(long long)%1$s : (unsigned long long)%1$s)"
        .formatted(value);
  }

  /** {@return an expression as a value of a type has it, in what such values are computed with} */
  static String rounded(DType type, String value, String computed) {
    return switch (type) {
      case F16 -> "from_f16(to_f16((float)" + value + "))";
      case BF16 -> "from_bf16(to_bf16((float)" + value + "))";
      case F8E4M3FN -> "from_e4m3(to_e4m3((float)" + value + "))";
      case F8E5M2 -> "from_e5m2(to_e5m2((float)" + value + "))";
      case F8E4M3FNUZ -> "from_e4m3fnuz(to_e4m3fnuz((float)" + value + "))";
      case F8E5M2FNUZ -> "from_e5m2fnuz(to_e5m2fnuz((float)" + value + "))";
      case F8E8M0FNU -> "from_e8m0(to_e8m0((float)" + value + "))";
      case F64, F32 -> "(" + CTypes.computed(type) + ")" + value;
      case BOOL -> "(" + value + " != 0)";
      case U64 -> "(unsigned long long)" + (computed.equals("long long") ? value : unsigned(value));
      default ->
          "(%s)(%s)%s"
              .formatted(
                  CTypes.computed(type),
                  CTypes.stored(type),
                  computed.equals("long long") ? value : "(long long)" + value);
    };
  }

  /** Whether values of a type are computed with in a longer one. */
  static boolean isShort(DType dtype) {
    return dtype.isFloat() && dtype.bytes() < DType.F32.bytes();
  }
}
