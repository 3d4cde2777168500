package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.runtime.tensor.HostTensor;

/** The common shape of tensors. */
final class Broadcasts {
  private Broadcasts() {}

  /**
   * {@return the shape that both broadcast to}
   *
   * @throws HostKernelException when none exists, as a mask's indices may have any number
   */
  static ImmutableLongArray sizes(ImmutableLongArray a, ImmutableLongArray b) {
    var result = new long[Math.max(a.length(), b.length())];
    for (int i = 1; i <= result.length; i++) {
      long x = i <= a.length() ? a.get(a.length() - i) : 1;
      long y = i <= b.length() ? b.get(b.length() - i) : 1;
      if (x != y && x != 1 && y != 1) {
        throw new HostKernelException("%s and %s do not broadcast".formatted(a, b));
      }
      result[result.length - i] = x == 1 ? y : x;
    }
    return ImmutableLongArray.copyOf(result);
  }

  static ImmutableLongArray sizes(HostTensor a, HostTensor b) {
    return sizes(a.type().sizes(), b.type().sizes());
  }
}
