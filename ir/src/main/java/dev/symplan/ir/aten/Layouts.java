package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpTypeException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** The layouts that PyTorch gives to results. */
public final class Layouts {
  private Layouts() {}

  /**
   * {@return the type of a result that is computed element by element}
   *
   * <p>The layout is that of PyTorch's {@code TensorIterator}: dense, the dimensions in the order
   * of the operands' strides, the first operand's counting first.
   *
   * @param operands in the order in which the op names them; numbers left out
   */
  static TensorType pointwise(DType dtype, List<TensorType> operands) {
    var sizes = Shapes.broadcast(operands);
    var shared = sharedStrides(operands);
    return new TensorType(
        dtype,
        sizes,
        shared.orElseGet(() -> ordered(sizes, order(sizes, operands))),
        MemorySpace.ANY);
  }

  /** Operands of one shape and one gapless layout give it to the result as it is. */
  private static Optional<ImmutableLongArray> sharedStrides(List<TensorType> operands) {
    if (operands.isEmpty()) {
      return Optional.empty();
    }
    var first = operands.getFirst();
    boolean contiguous = true;
    boolean alike = true;
    for (var operand : operands) {
      if (!operand.sizes().equals(first.sizes())) {
        return Optional.empty();
      }
      contiguous = contiguous && operand.isContiguous();
      alike = alike && operand.isDense() && operand.strides().equals(first.strides());
    }
    return alike && !contiguous ? Optional.of(first.strides()) : Optional.empty();
  }

  /** {@code TensorIteratorBase::reorder_dimensions}: the dimensions, innermost first. */
  private static int[] order(ImmutableLongArray sizes, List<TensorType> operands) {
    int rank = sizes.length();
    var order = new int[rank];
    Arrays.setAll(order, i -> rank - 1 - i);
    boolean contiguous = true;
    for (var operand : operands) {
      contiguous = contiguous && operand.sizes().equals(sizes) && operand.isContiguous();
    }
    for (int i = 1; i < rank && !contiguous; i++) {
      int at = i;
      for (int below = i - 1; below >= 0; below--) {
        int comparison = compare(sizes, operands, order[below], order[at]);
        if (comparison < 0) {
          break;
        }
        if (comparison > 0) {
          int dim = order[below];
          order[below] = order[at];
          order[at] = dim;
          at = below;
        }
      }
    }
    return order;
  }

  /** Positive where {@code outer} should lie further in than {@code inner}; 0 if it is open. */
  private static int compare(
      ImmutableLongArray sizes, List<TensorType> operands, int outer, int inner) {
    for (var operand : operands) {
      long a = broadcastStride(operand, sizes, outer);
      long b = broadcastStride(operand, sizes, inner);
      if (a == 0 || b == 0) {
        continue;
      }
      if (a != b) {
        return Long.compare(a, b);
      }
      if (sizes.get(outer) > sizes.get(inner)) {
        return 1;
      }
    }
    return 0;
  }

  private static long broadcastStride(TensorType operand, ImmutableLongArray sizes, int dim) {
    int own = dim - sizes.length() + operand.rank();
    boolean absent = own < 0 || (operand.size(own) == 1 && sizes.get(dim) != 1);
    return absent ? 0 : operand.stride(own);
  }

  /** {@return dense strides with the dimensions in the given order, innermost first} */
  static ImmutableLongArray ordered(ImmutableLongArray sizes, int[] order) {
    var strides = new long[sizes.length()];
    long next = 1;
    for (int dim : order) {
      strides[dim] = next;
      next = Shapes.times(next, Math.max(1, sizes.get(dim)));
    }
    return ImmutableLongArray.copyOf(strides);
  }

  /** {@return the type of a copy that keeps the layout as far as it has no gaps} */
  static TensorType preserved(TensorType type) {
    return type.isDense()
        ? type.withSpace(MemorySpace.ANY)
        : pointwise(type.dtype(), List.of(type));
  }

  static TensorType fresh(TensorType type) {
    return TensorType.contiguous(type.dtype(), type.sizes());
  }

  /**
   * {@return the type of a copy in a memory format}
   *
   * @param format {@code None} or {@code torch.preserve_format} keeps the layout
   */
  static TensorType inFormat(TensorType type, Arg format) {
    return switch (format) {
      case Arg.None _ -> preserved(type);
      case Arg.Symbol(String name) ->
          switch (name) {
            case "preserve_format" -> preserved(type);
            case "contiguous_format" -> fresh(type);
            case "channels_last" -> channelsLast(type, 4);
            case "channels_last_3d" -> channelsLast(type, 5);
            default ->
                throw new OpTypeException(
                    "unknown memory format torch." + name,
                    "torch.preserve_format, torch.contiguous_format, torch.channels_last,"
                        + " torch.channels_last_3d");
          };
      case Arg.Ref _, Arg.Seq _, Arg.Literal _ ->
          throw new OpTypeException("a memory format is needed");
    };
  }

  private static TensorType channelsLast(TensorType type, int rank) {
    if (type.rank() != rank) {
      throw new OpTypeException(
          "this memory format needs %s, but the tensor has %s"
              .formatted(Units.count(rank, "dimension"), type.rank()));
    }
    var order = new int[rank];
    order[0] = 1;
    for (int i = 1; i < rank - 1; i++) {
      order[i] = rank - i;
    }
    order[rank - 1] = 0;
    return new TensorType(
        type.dtype(), type.sizes(), ordered(type.sizes(), order), MemorySpace.ANY);
  }

  /**
   * {@return the type of a fresh tensor with the dimensions laid out as {@code like}'s}
   *
   * @param sizes as many as {@code like} has
   */
  static TensorType like(TensorType like, ImmutableLongArray sizes) {
    if (like.sizes().equals(sizes)) {
      return preserved(like);
    }
    var order =
        IntStream.range(0, sizes.length())
            .map(i -> sizes.length() - 1 - i)
            .boxed()
            .sorted((a, b) -> Long.compare(like.stride(a), like.stride(b)))
            .mapToInt(i -> i)
            .toArray();
    return new TensorType(like.dtype(), sizes, ordered(sizes, order), MemorySpace.ANY);
  }

  /**
   * {@return the strides with which a tensor can be seen in another shape without a copy}
   *
   * <p>PyTorch's {@code computeStride} (aten/src/ATen/TensorUtils.cpp): runs of dimensions that lie
   * without gaps may be cut and joined freely.
   */
  public static Optional<ImmutableLongArray> viewStrides(
      TensorType from, ImmutableLongArray sizes) {
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
      boolean joins = dim > 0 && (from.size(dim - 1) == 1 || from.stride(dim - 1) == run * base);
      if (joins) {
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
    return view < 0 ? Optional.of(ImmutableLongArray.copyOf(strides)) : Optional.empty();
  }
}
