package dev.symplan.ir.op.aten;

import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** Every op that needs no declaration. */
public final class BuiltinOps {
  private BuiltinOps() {}

  public static Stream<OpSpec> all() {
    return Stream.of(
            AttentionOps.all(),
            CollectiveOps.all(),
            CopyOps.all(),
            CreationOps.all(),
            ElementwiseOps.all(),
            GuardOps.all(),
            IndexOps.all(),
            MatrixOps.all(),
            NormOps.all(),
            RandomOps.all(),
            ReductionOps.all(),
            Slices.all(),
            SymplanOps.all(),
            ViewOps.all())
        .flatMap(specs -> specs);
  }
}
