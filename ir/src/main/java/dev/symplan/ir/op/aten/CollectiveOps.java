package dev.symplan.ir.op.aten;

import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** {@code _c10d_functional} and {@code _c10d_functional_autograd}. */
final class CollectiveOps {
  private CollectiveOps() {}

  static Stream<OpSpec> all() {
    return Stream.of();
  }
}
