package dev.symplan.ir.aten;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.DType.Kind;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The element type of a computation over operands of several: PyTorch's type promotion. */
public final class Promotion {
  private Promotion() {}

  /**
   * {@return the element type that operands compute in}
   *
   * <p>PyTorch's {@code result_type} (aten/src/ATen/native/TypeProperties.cpp): tensors with
   * dimensions decide; tensors without, then plain numbers, only where their kind is higher.
   *
   * @param operands tensors and numbers; {@code None} does not count
   * @throws OpTypeException when no type holds them all
   */
  static DType of(List<Arg> operands) {
    @Nullable DType shaped = null;
    @Nullable DType scalars = null;
    @Nullable DType numbers = null;
    for (Arg operand : operands) {
      if (operand instanceof Arg.Ref(Value value) && value.type() instanceof TensorType tensor) {
        if (tensor.rank() > 0) {
          shaped = join(shaped, tensor.dtype());
        } else {
          scalars = join(scalars, tensor.dtype());
        }
      } else if (!(operand instanceof Arg.None)) {
        numbers = join(numbers, ofNumber(operand));
      }
    }
    @Nullable DType result = outrank(shaped, outrank(scalars, numbers));
    if (result == null) {
      throw new OpTypeException("there is no operand to take the element type from");
    }
    return result;
  }

  /**
   * {@return the float type that tensors are compared in, which numbers are rounded to as well; f32
   * where none is a float}
   */
  public static DType ofFloats(List<TensorType> operands) {
    @Nullable DType shaped = null;
    @Nullable DType scalars = null;
    for (var operand : operands) {
      if (!operand.dtype().isFloat()) {
        continue;
      }
      if (operand.rank() > 0) {
        shaped = join(shaped, operand.dtype());
      } else {
        scalars = join(scalars, operand.dtype());
      }
    }
    return shaped != null ? shaped : scalars != null ? scalars : DType.F32;
  }

  /** {@return the element type of a tensor made of a number: floats are f32} */
  static DType ofNumber(Arg number) {
    return switch (number) {
      case Arg.Bool _ -> DType.BOOL;
      case Arg.Int _ -> DType.I64;
      case Arg.Float _ -> DType.F32;
      case Arg.Ref(Value value) when value.type() instanceof ScalarType type ->
          switch (type) {
            case INT -> DType.I64;
            case FLOAT -> DType.F32;
            case BOOL -> DType.BOOL;
          };
      case Arg.Ref _, Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _, Arg.None _ ->
          throw new OpTypeException("an operand is neither a tensor nor a number");
    };
  }

  private static DType join(@Nullable DType a, DType b) {
    return a == null ? b : of(a, b);
  }

  /** {@code combine_categories}: {@code lower} counts only where its kind is the higher one. */
  private static @Nullable DType outrank(@Nullable DType higher, @Nullable DType lower) {
    if (higher == null || lower == null) {
      return higher == null ? lower : higher;
    }
    if (lower.kind().compareTo(higher.kind()) <= 0) {
      return higher;
    }
    return lower.kind() == Kind.COMPLEX && higher.isFloat() ? complex(higher) : of(higher, lower);
  }

  /**
   * {@return the smallest type that holds both, as {@code torch.promote_types}}
   *
   * @throws OpTypeException when none exists
   */
  static DType of(DType a, DType b) {
    if (a == b) {
      return a;
    }
    if (isNarrowFloat(a)
        || isNarrowFloat(b)
        || (isWideUnsigned(a) && !b.isFloat())
        || (isWideUnsigned(b) && !a.isFloat())) {
      throw noCommon(a, b);
    }
    if (a.kind() == b.kind()) {
      return switch (a.kind()) {
        case BOOL -> a;
        case COMPLEX -> wider(a, b);
        case FLOAT -> floats(a, b);
        case INTEGER -> integers(a, b);
      };
    }
    var higher = a.kind().compareTo(b.kind()) > 0 ? a : b;
    var lower = higher == a ? b : a;
    return higher.kind() == Kind.COMPLEX && lower.isFloat()
        ? wider(higher, complex(lower))
        : higher;
  }

  private static DType wider(DType a, DType b) {
    return a.bytes() > b.bytes() ? a : b;
  }

  private static DType floats(DType a, DType b) {
    // Neither f16 nor bf16 holds the other.
    return a.bytes() == b.bytes() ? DType.F32 : wider(a, b);
  }

  private static DType integers(DType a, DType b) {
    if (a == DType.U8 || b == DType.U8) {
      var signed = a == DType.U8 ? b : a;
      return signed == DType.I8 ? DType.I16 : signed;
    }
    return wider(a, b);
  }

  private static boolean isNarrowFloat(DType dtype) {
    return dtype.isFloat() && dtype.bytes() == 1;
  }

  private static boolean isWideUnsigned(DType dtype) {
    return dtype == DType.U16 || dtype == DType.U32 || dtype == DType.U64;
  }

  private static OpTypeException noCommon(DType a, DType b) {
    return new OpTypeException(
        "no element type holds both %s and %s".formatted(a.shortName(), b.shortName()),
        "convert one with prims::convert_element_type");
  }

  /** {@return the complex type whose parts hold {@code dtype}} */
  static DType complex(DType dtype) {
    return switch (dtype) {
      case F16 -> DType.C32;
      case F64 -> DType.C128;
      default -> dtype.kind() == Kind.COMPLEX ? dtype : DType.C64;
    };
  }

  /** {@return the type that functions such as {@code exp} compute in: integers give f32} */
  static DType floating(DType dtype) {
    return isIntegral(dtype) ? DType.F32 : dtype;
  }

  /** {@return the type that sums are made in: integers and bool give i64} */
  static DType summing(DType dtype) {
    return isIntegral(dtype) ? DType.I64 : dtype;
  }

  /** {@return whether the type is an integer type or bool} */
  static boolean isIntegral(DType dtype) {
    return dtype.kind() == Kind.INTEGER || dtype.kind() == Kind.BOOL;
  }
}
