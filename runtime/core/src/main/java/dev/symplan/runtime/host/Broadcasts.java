package dev.symplan.runtime.host;

import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.List;

/** In-place arithmetic that products end with. */
final class Broadcasts {
  private Broadcasts() {}

  /** {@code target = alpha * target + beta * summand}, the summand broadcast. */
  static void add(HostTensor target, HostTensor summand, double alpha, double beta) {
    var sizes = target.type().sizes().toArray();
    var strides =
        List.of(Loops.byteStrides(target.type(), sizes), Loops.byteStrides(summand.type(), sizes));
    var a = new double[Loops.CHUNK];
    var b = new double[Loops.CHUNK];
    Loops.forEach(
        sizes,
        strides,
        (offsets, steps, count) -> {
          Elements.load(target.memory(), offsets[0], steps[0], target.dtype(), a, count);
          if (beta != 0) {
            Elements.load(summand.memory(), offsets[1], steps[1], summand.dtype(), b, count);
          }
          for (int i = 0; i < count; i++) {
            a[i] = alpha * a[i] + (beta == 0 ? 0 : beta * b[i]);
          }
          Elements.store(a, count, target.memory(), offsets[0], steps[0], target.dtype());
        });
  }
}
