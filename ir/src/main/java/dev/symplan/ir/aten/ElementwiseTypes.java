package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.DType.Kind;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

/**
 * The result of an op that computes each element from the operands' elements at the same index.
 * Operands are named by their parameters; where none is named, they are all tensors of the call.
 */
final class ElementwiseTypes {

  /** The element type of the result, from the promoted type of the operands. */
  enum Gives {
    /** The promoted type. */
    SAME(d -> d),
    /** A float type: integers compute in f32. */
    FLOAT(Promotion::floating),
    /** Complex numbers give the type of their parts. */
    REAL(DType::real),
    F64(d -> d.kind() == Kind.COMPLEX ? DType.C128 : DType.F64),
    BOOL(d -> DType.BOOL);

    private final UnaryOperator<DType> map;

    Gives(UnaryOperator<DType> map) {
      this.map = map;
    }
  }

  /** The element types that an op computes with. */
  enum Takes {
    ANY(d -> true, ""),
    NUMBERS(d -> d != DType.BOOL, "numbers"),
    REAL(
        d -> d.kind() != Kind.COMPLEX,
        "real numbers",
        "compute with the parts that aten::view_as_real gives"),
    REAL_NUMBERS(d -> REAL.holds.test(d) && d != DType.BOOL, "real numbers", REAL.hint),
    REAL_FLOATS(d -> d.isFloat(), "real floats", REAL.hint),
    COMPLEX(d -> d.kind() == Kind.COMPLEX, "complex numbers"),
    INTEGERS(Promotion::isIntegral, "integers and bool"),
    /** Those that a signed number of 64 bits holds. */
    SIGNED_INTEGERS(d -> INTEGERS.holds.test(d) && d != DType.U64, "integers but u64, and bool"),
    FLOATS(d -> !Promotion.isIntegral(d), "floats");

    private final Predicate<DType> holds;
    private final String text;
    private final String hint;

    Takes(Predicate<DType> holds, String text) {
      this(holds, text, "convert with prims::convert_element_type");
    }

    Takes(Predicate<DType> holds, String text, String hint) {
      this.holds = holds;
      this.text = text;
      this.hint = hint;
    }

    void check(DType dtype) {
      if (!holds.test(dtype)) {
        throw new OpTypeException(
            "works on %s, not on %s".formatted(text, dtype.shortName()), hint);
      }
    }
  }

  private ElementwiseTypes() {}

  /** {@return the rule of an op that computes with all its operands in their common type} */
  static InferRule rule(Takes takes, Gives gives, String... operands) {
    return InferRule.single(call -> computed(call, takes, gives, operands));
  }

  /** {@return the result of an op that computes with all its operands in their common type} */
  static OpResult computed(OpCall call, Takes takes, Gives gives, String... operands) {
    var dtype = promoted(call, operands);
    takes.check(dtype);
    return result(gives.map.apply(dtype), call, operands);
  }

  /** {@return the type that the operands promote to} */
  static DType promoted(OpCall call, String... operands) {
    return Promotion.of(args(call, operands));
  }

  /** {@return a result of this element type, with the shape that the operands broadcast to} */
  static OpResult result(DType dtype, OpCall call, String... operands) {
    var tensors = ImmutableList.<TensorType>builder();
    for (var arg : args(call, operands)) {
      if (arg instanceof Arg.Ref(Value value) && value.type() instanceof TensorType tensor) {
        tensors.add(tensor);
      }
    }
    return OpResult.fresh(Layouts.pointwise(dtype, tensors.build()));
  }

  private static List<Arg> args(OpCall call, String... operands) {
    var args = new ArrayList<Arg>();
    for (var operand : operands) {
      args.add(call.arg(operand));
    }
    if (operands.length == 0) {
      for (var arg : call.args()) {
        if (arg instanceof Arg.Ref(Value value) && value.isTensor()) {
          args.add(arg);
        }
      }
    }
    return args;
  }
}
