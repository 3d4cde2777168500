package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.TensorType;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;

/** Comparisons to the bit. */
final class Bits {
  private Bits() {}

  /** Fails where an output differs from that of another session. */
  static void assertSame(Session actual, Session expected, String when) {
    for (int rank = 0; rank < actual.ranks(); rank++) {
      for (int i = 0; i < actual.outputCount(); i++) {
        assertSame(
            actual.output(rank, i).orElseThrow(),
            expected.output(rank, i).orElseThrow(),
            "output %s of rank %s, %s".formatted(i, rank, when));
      }
    }
  }

  /**
   * Fails where elements differ, but for the sign of zeros: {@code fmax} of two zeros may be
   * either. What lies between elements does not count.
   */
  static void assertSameNumbers(HostTensor actual, HostTensor expected, String what) {
    var own = flat(actual);
    var other = flat(expected);
    for (long i = 0; i < own.type().numel(); i++) {
      double a = own.get(i);
      double b = other.get(i);
      if (a != b && !(Double.isNaN(a) && Double.isNaN(b))) {
        throw new AssertionError("element %s is %s, expected %s: %s".formatted(i, a, b, what));
      }
    }
  }

  private static HostTensor flat(HostTensor tensor) {
    return tensor
        .copyAs(tensor.type().contiguous())
        .as(TensorType.contiguous(tensor.dtype(), tensor.type().numel()));
  }

  /** Fails where two tensors of one type differ. */
  static void assertSame(HostTensor actual, HostTensor expected, String what) {
    assertThat(
            actual
                .memory()
                .asSlice(0, actual.type().storageBytes())
                .mismatch(expected.memory().asSlice(0, expected.type().storageBytes())))
        .as(what)
        .isEqualTo(-1);
  }
}
