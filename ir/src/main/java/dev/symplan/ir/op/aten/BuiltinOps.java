package dev.symplan.ir.op.aten;

import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** Every op that needs no declaration. */
public final class BuiltinOps {
  private BuiltinOps() {}

  public static Stream<OpSpec> all() {
    return Stream.of(
            functional(),
            InPlaceOps.of(functional()),
            InPlaceOps.all(),
            CollectiveOps.all(),
            GuardOps.all(),
            RandomOps.all(),
            SymplanOps.all())
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> functional() {
    return Stream.of(
            AttentionOps.all(),
            BatchNormOps.all(),
            ConvolutionOps.all(),
            CopyOps.all(),
            CreationOps.all(),
            ElementwiseOps.all(),
            ForeachOps.all(),
            GluOps.all(),
            IndexOps.all(),
            MaskOps.all(),
            MatrixOps.all(),
            NormOps.all(),
            OptimizerOps.all(),
            PadOps.all(),
            PoolOps.all(),
            ReductionOps.all(),
            Slices.all(),
            UpsampleOps.all(),
            ViewOps.all())
        .flatMap(specs -> specs);
  }
}
