package dev.symplan.ir.op.aten;

import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** Every op that needs no declaration. */
public final class BuiltinOps {
  private BuiltinOps() {}

  public static Stream<OpSpec> all() {
    return Stream.of(
            CollectiveOps.all(),
            CopyOps.all(),
            ElementwiseOps.all(),
            MatrixOps.all(),
            ReductionOps.all(),
            SymplanOps.all(),
            ViewOps.all())
        .flatMap(specs -> specs);
  }
}
