package dev.symplan.ir.op.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.DType.Kind;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** PyTorch's rules for element types, broadcasting and layouts of elementwise results. */
final class Types {
  private Types() {}

  /**
   * {@return the element type of a computation over operands}
   *
   * <p>PyTorch's {@code result_type}: tensors with dimensions decide; scalar tensors, then plain
   * numbers, only where their kind is higher.
   */
  static DType promote(List<Arg> operands) {
    @Nullable DType dims = null;
    @Nullable DType scalars = null;
    @Nullable DType numbers = null;
    for (Arg operand : operands) {
      if (operand instanceof Arg.Ref(Value value) && value.type() instanceof TensorType tensor) {
        if (tensor.rank() > 0) {
          dims = join(dims, tensor.dtype());
        } else {
          scalars = join(scalars, tensor.dtype());
        }
      } else {
        numbers = join(numbers, numberType(operand));
      }
    }
    @Nullable DType result = higherKind(dims, scalars);
    result = higherKind(result, numbers);
    if (result == null) {
      throw new OpTypeException("there is no operand to take the element type from");
    }
    return result;
  }

  private static @Nullable DType higherKind(@Nullable DType first, @Nullable DType second) {
    if (first == null || second == null) {
      return first == null ? second : first;
    }
    return second.kind().compareTo(first.kind()) > 0 ? second : first;
  }

  private static DType numberType(Arg number) {
    return switch (number) {
      case Arg.Bool _ -> DType.BOOL;
      case Arg.Int _ -> DType.I64;
      case Arg.Float _ -> DType.F32;
      case Arg.Ref(Value value) -> value.type() == ScalarType.INT ? DType.I64 : DType.F32;
      case Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _, Arg.None _ ->
          throw new OpTypeException("an operand is neither a tensor nor a number");
    };
  }

  private static DType join(@Nullable DType a, DType b) {
    return a == null ? b : promote(a, b);
  }

  /** {@return the smallest type that holds both, as {@code torch.promote_types}} */
  static DType promote(DType a, DType b) {
    if (a == b) {
      return a;
    }
    if (a.kind() != b.kind()) {
      var higher = a.kind().compareTo(b.kind()) > 0 ? a : b;
      var lower = higher == a ? b : a;
      // A complex type must hold the other's precision; nothing else looks at the lower kind.
      return higher.kind() == Kind.COMPLEX && lower == DType.F64 ? DType.C128 : higher;
    }
    return switch (a.kind()) {
      case BOOL -> a;
      case COMPLEX -> a.bytes() > b.bytes() ? a : b;
      case FLOAT -> {
        if (a.bytes() == b.bytes()) {
          // f16 and bf16, or two 8-bit types: neither holds the other.
          yield a.bytes() == 2 ? DType.F32 : DType.BF16;
        }
        yield a.bytes() > b.bytes() ? a : b;
      }
      case INTEGER -> promoteIntegers(a, b);
    };
  }

  private static DType promoteIntegers(DType a, DType b) {
    boolean aUnsigned = a.shortName().startsWith("u");
    boolean bUnsigned = b.shortName().startsWith("u");
    if (aUnsigned == bUnsigned) {
      return a.bytes() > b.bytes() ? a : b;
    }
    var signed = aUnsigned ? b : a;
    var unsigned = aUnsigned ? a : b;
    if (signed.bytes() > unsigned.bytes()) {
      return signed;
    }
    return switch (unsigned.bytes()) {
      case 1 -> DType.I16;
      case 2 -> DType.I32;
      default -> DType.I64;
    };
  }

  /** {@return the float type that a function of this type computes in, as {@code exp} does} */
  static DType floating(DType dtype) {
    return dtype.kind().compareTo(Kind.FLOAT) < 0 ? DType.F32 : dtype;
  }

  /** {@return the shape that both broadcast to} */
  static ImmutableLongArray broadcast(ImmutableLongArray a, ImmutableLongArray b) {
    int rank = Math.max(a.length(), b.length());
    var sizes = new long[rank];
    for (int i = 0; i < rank; i++) {
      long x = i < rank - a.length() ? 1 : a.get(i - rank + a.length());
      long y = i < rank - b.length() ? 1 : b.get(i - rank + b.length());
      if (x != y && x != 1 && y != 1) {
        throw new OpTypeException(
            "shapes %s and %s do not broadcast: %d and %d at dimension %d"
                .formatted(text(a), text(b), x, y, i));
      }
      sizes[i] = x == 1 ? y : x;
    }
    return ImmutableLongArray.copyOf(sizes);
  }

  static String text(ImmutableLongArray sizes) {
    return sizes.asList().toString();
  }

  /**
   * {@return the type of an elementwise result}
   *
   * <p>TensorIterator keeps the layout that all full-size operands share; else it is row-major.
   */
  static TensorType elementwise(DType dtype, List<Arg> operands) {
    var sizes = ImmutableLongArray.of();
    for (Arg operand : operands) {
      if (operand instanceof Arg.Ref(Value value) && value.type() instanceof TensorType tensor) {
        sizes = broadcast(sizes, tensor.sizes());
      }
    }
    @Nullable ImmutableLongArray strides = null;
    boolean shared = true;
    for (Arg operand : operands) {
      if (operand instanceof Arg.Ref(Value value)
          && value.type() instanceof TensorType tensor
          && tensor.sizes().equals(sizes)) {
        shared &= tensor.isDense() && (strides == null || tensor.strides().equals(strides));
        strides = tensor.strides();
      }
    }
    return shared && strides != null
        ? new TensorType(dtype, sizes, strides, MemorySpace.ANY)
        : TensorType.contiguous(dtype, sizes);
  }

  /**
   * {@return the strides with which a tensor can be seen in another shape without a copy}
   *
   * <p>The algorithm of PyTorch's {@code computeStride}: runs of dimensions that lie without gaps
   * may be cut and joined freely.
   */
  static Optional<ImmutableLongArray> viewStrides(TensorType from, ImmutableLongArray sizes) {
    if (from.numel() == 0 || from.rank() == 0) {
      return Optional.of(
          from.sizes().equals(sizes) ? from.strides() : TensorType.contiguousStrides(sizes));
    }
    var strides = new long[sizes.length()];
    int view = sizes.length() - 1;
    long base = from.stride(from.rank() - 1);
    long run = 1;
    long covered = 1;
    for (int dim = from.rank() - 1; dim >= 0; dim--) {
      run *= from.size(dim);
      boolean ends = dim == 0 || (from.size(dim - 1) != 1 && from.stride(dim - 1) != run * base);
      if (!ends) {
        continue;
      }
      while (view >= 0 && (covered < run || sizes.get(view) == 1)) {
        strides[view] = covered * base;
        covered *= sizes.get(view);
        view--;
      }
      if (covered != run) {
        return Optional.empty();
      }
      if (dim > 0) {
        base = from.stride(dim - 1);
        run = 1;
        covered = 1;
      }
    }
    return view == -1 ? Optional.of(ImmutableLongArray.copyOf(strides)) : Optional.empty();
  }

  /** {@return the shape with its one -1 replaced by what is left} */
  static ImmutableLongArray inferSize(long numel, ImmutableLongArray wanted) {
    long known = 1;
    int open = -1;
    for (int i = 0; i < wanted.length(); i++) {
      if (wanted.get(i) == -1 && open < 0) {
        open = i;
      } else if (wanted.get(i) < 0) {
        throw new OpTypeException("shape %s is not valid".formatted(text(wanted)));
      } else {
        known *= wanted.get(i);
      }
    }
    if (open < 0 ? known != numel : known == 0 || numel % known != 0) {
      throw new OpTypeException(
          "%d elements do not fit the shape %s".formatted(numel, text(wanted)));
    }
    if (open < 0) {
      return wanted;
    }
    var sizes = wanted.toArray();
    sizes[open] = numel / known;
    return ImmutableLongArray.copyOf(sizes);
  }
}
