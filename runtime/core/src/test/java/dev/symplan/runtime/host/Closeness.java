package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * How near a result must be to PyTorch's.
 *
 * <p>Integers, bools, moved elements and what IEEE 754 fixes must be the same; NaN matches any NaN.
 * Other floats are PyTorch's own rounding apart, for which two units are counted, in steps of the
 * result's type:
 *
 * <ul>
 *   <li>Elementwise functions: 4 steps of the element. PyTorch's vectorized functions are within 1
 *       step (SLEEF's {@code u10}) and some formulas take three of them; 16-bit results are
 *       computed in f32 by both sides, so that they are neighbours, 1 step.
 *   <li>Sums, and functions whose terms cancel, such as products of complex numbers: as many steps
 *       of the largest number in the call. PyTorch rounds after every term, in an order of its own;
 *       recorded calls have at most a few dozen terms, whose rounding errors cancel for the most
 *       part. Gradients of 16-bit norms are summed in 16 bits there: 2 steps.
 * </ul>
 */
final class Closeness {
  /** Ops that move elements, choose between them, or do one operation of IEEE 754. */
  private static final ImmutableSet<String> EXACT =
      names(
          """
          neg abs relu sign sgn square floor ceil round trunc frac relu6 sqrt reciprocal nan_to_num
          add sub rsub mul div floor_divide remainder fmod maximum minimum fmax fmin max min
          copysign nextafter heaviside where clamp clamp_min clamp_max masked_fill fill hardtanh
          threshold threshold_backward hardtanh_backward amax amin aminmax argmax argmin cummax
          cummin sort argsort topk median index index_select gather take scatter index_put
          _unsafe_index _unsafe_index_put index_copy index_fill masked_scatter slice_scatter
          select_scatter diagonal_scatter as_strided_scatter slice_backward select_backward
          embedding convert_element_type _to_copy clone copy cat stack repeat tile
          repeat_interleave flip rev roll constant_pad_nd pad tril triu diag_embed reshape full
          full_like new_full scalar_tensor zeros ones ones_like eye arange iota histc bucketize
          max_pool2d_with_indices _low_memory_max_pool_with_offsets upsample_nearest2d im2col
          """);

  /** Elementwise functions of differences, near whose roots no digit is certain. */
  private static final ImmutableSet<String> CANCELS =
      names(
          """
          gelu gelu_backward sinc logaddexp logaddexp2 tanh_backward logit digamma lgamma addcmul
          addcdiv lerp addbmm
          """);

  /** Ops that do one operation of IEEE 754 for each part of a complex number at the most. */
  private static final ImmutableSet<String> EXACT_IN_PARTS =
      names(
          """
          neg add sub rsub where eq ne complex conj_physical _conj_physical convert_element_type
          _to_copy _conj _neg_view resolve_conj resolve_neg nan_to_num copy index_select index gather take embedding index_copy index_fill scatter masked_scatter
          masked_fill fill tril triu constant_pad_nd flip roll repeat cat stack clone diag_embed
          slice_scatter select_scatter slice_backward select_backward full zeros ones eye
          scalar_tensor zeros_like ones_like full_like new_zeros new_ones new_full
          """);

  /** PyTorch leaves it to the processor which of two zeros is the larger. */
  private static final ImmutableSet<String> ZERO_OF_EITHER_SIGN =
      names("maximum minimum fmax fmin max min");

  private static final int STEPS = 4;
  private static final int NARROW_STEPS = 2;

  private Closeness() {}

  private static ImmutableSet<String> names(String text) {
    return ImmutableSet.copyOf(text.strip().split("\\s+"));
  }

  static void check(RecordedCall call, int index, HostTensor actual, HostTensor expected) {
    assertThat(actual.dtype())
        .as("element type of result %s of %s", index, call)
        .isEqualTo(expected.dtype());
    assertThat(actual.type().sizes())
        .as("shape of result %s of %s", index, call)
        .isEqualTo(expected.type().sizes());
    var given = Programs.flat(actual.contiguous());
    var wanted = Programs.flat(expected.contiguous());
    boolean exact = isExact(call);
    double scale = scale(call, wanted);
    for (long i = 0; i < wanted.type().numel(); i++) {
      boolean matches =
          wanted.dtype().isFloat()
              ? matches(call, given.get(i), wanted.get(i), wanted.dtype(), exact ? 0 : scale, exact)
              : given.getLong(i) == wanted.getLong(i);
      if (!matches) {
        assertThat(text(given, i))
            .as("element %s of result %s of %s", i, index, call)
            .isEqualTo(text(wanted, i));
      }
    }
  }

  private static String text(HostTensor tensor, long i) {
    return tensor.dtype().isFloat()
        ? Double.toString(tensor.get(i))
        : Long.toUnsignedString(tensor.getLong(i));
  }

  private static boolean isExact(RecordedCall call) {
    var exact = isComplex(call) ? EXACT_IN_PARTS : EXACT;
    return exact.contains(call.def().name().name()) && !call.has("alpha") && !call.has("reduce");
  }

  private static boolean isComplex(RecordedCall call) {
    return Stream.concat(
            call.operands().stream(), call.expected().stream().flatMap(Optional::stream))
        .anyMatch(tensor -> tensor.dtype().kind() == DType.Kind.COMPLEX);
  }

  private static boolean matches(
      RecordedCall call, double given, double wanted, DType dtype, double scale, boolean exact) {
    var name = call.def().name().name();
    if (Double.isNaN(wanted) || Double.isNaN(given)) {
      return Double.isNaN(wanted) && Double.isNaN(given);
    }
    if (given == wanted) {
      return wanted != 0
          || !exact
          || ZERO_OF_EITHER_SIGN.contains(name)
          || Math.copySign(1, wanted) == Math.copySign(1, given);
    }
    boolean elementwise =
        call.def().has(OpTrait.ELEMENTWISE) && !CANCELS.contains(name) && !isComplex(call);
    boolean narrow = dtype.bytes() < 4;
    double size = elementwise && !exact ? Math.abs(wanted) : scale;
    int steps = exact ? 0 : !narrow ? STEPS : elementwise ? 1 : NARROW_STEPS;
    return Double.isFinite(wanted) && Math.abs(given - wanted) <= steps * step(size, dtype);
  }

  /** {@return the distance of numbers of this size} */
  private static double step(double size, DType dtype) {
    return switch (dtype) {
      case F64 -> Math.ulp(size);
      case F32 -> Math.ulp((float) size);
      case F16 -> Math.max(0x1p-24, Math.ulp((float) size) * 0x1p13);
      case BF16 -> Math.ulp((float) size) * 0x1p16;
      default -> throw new IllegalArgumentException(dtype.toString());
    };
  }

  /** {@return the largest finite size of a number in the call} */
  private static double scale(RecordedCall call, HostTensor expected) {
    double largest = largest(expected);
    for (var operand : call.operands()) {
      largest = Math.max(largest, largest(Programs.flat(operand)));
    }
    return largest;
  }

  private static double largest(HostTensor flat) {
    double largest = 0;
    for (long i = 0; i < flat.type().numel(); i++) {
      double size = Math.abs(flat.get(i));
      largest = Double.isFinite(size) ? Math.max(largest, size) : largest;
    }
    return largest;
  }
}
