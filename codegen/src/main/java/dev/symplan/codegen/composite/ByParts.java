package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpDef;
import java.util.Arrays;
import java.util.stream.Stream;

/**
 * The ops that do to the real parts of complex elements what they do to the imaginary ones: they
 * make, move or add up elements. Backends run them twice, on real tensors.
 */
public final class ByParts {
  /** Ops whose elements are 1, and so have imaginary parts of 0. */
  private static final ImmutableSet<String> ONES = names("ones ones_like new_ones eye eye.m");

  private static final ImmutableSet<String> NAMES =
      ImmutableSet.<String>builder()
          .addAll(ONES)
          .addAll(
              names(
                  """
                  full full_like new_full zeros zeros_like new_zeros zero_ scalar_tensor
                  fill.Scalar fill.Tensor masked_fill.Scalar masked_fill.Tensor
                  index_fill.int_Scalar index_fill.int_Tensor tril triu constant_pad_nd pad
                  diag_embed slice_backward select_backward scatter.value scatter.src scatter_add
                  index_put index_put_ _unsafe_index_put index_add index_copy
                  embedding_dense_backward masked_scatter cumsum where.Scalar col2im
                  nan_to_num native_dropout_backward
                  reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
                  replication_pad1d_backward replication_pad2d_backward
                  replication_pad3d_backward
                  """))
          .build();

  /** The arguments that are elements; other numbers are the same for both parts. */
  private static final ImmutableSet<String> VALUES =
      ImmutableSet.of("value", "fill_value", "s", "self", "other");

  /** The tensors that say where elements are. */
  private static final ImmutableSet<String> PLACES =
      ImmutableSet.of("index", "indices", "mask", "condition");

  private ByParts() {}

  private static ImmutableSet<String> names(String text) {
    return Arrays.stream(text.strip().split("\\s+"))
        .map(name -> "aten::" + name)
        .collect(ImmutableSet.toImmutableSet());
  }

  /** {@return the full names of these ops} */
  public static ImmutableSet<String> names() {
    return NAMES;
  }

  /**
   * {@return whether a call is one of them, of complex numbers} If its result is real, only the
   * first part is needed.
   *
   * @param tensors the types of operands and results
   */
  public static boolean suits(OpDef op, Stream<TensorType> tensors) {
    return NAMES.contains(op.name().toString()) && tensors.anyMatch(ComplexNumbers::isComplex);
  }

  /** {@return whether the imaginary parts of results are 0, whatever the arguments are} */
  public static boolean isReal(OpDef op) {
    return ONES.contains(op.name().toString());
  }

  /** {@return whether a real tensor has elements, with imaginary parts of 0} */
  public static boolean hasElements(String param) {
    return !PLACES.contains(param);
  }

  /** {@return a constant for one of the parts: 0 for the real ones, 1 for the imaginary ones} */
  public static Arg constant(String param, Arg value, int part) {
    if (value instanceof Arg.Dtype(DType dtype)) {
      return new Arg.Dtype(dtype.real());
    }
    boolean number =
        value instanceof Arg.Int || value instanceof Arg.Float || value instanceof Arg.Bool;
    return part == 1 && number && VALUES.contains(param) ? new Arg.Int(0) : value;
  }
}
