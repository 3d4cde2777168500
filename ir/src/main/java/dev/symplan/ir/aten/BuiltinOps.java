package dev.symplan.ir.aten;

import dev.symplan.ir.hlo.ops.HloOps;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** Every op that needs no declaration. */
public final class BuiltinOps {
  private static final OpRegistry REGISTRY = OpRegistry.of(all());

  private BuiltinOps() {}

  /** {@return the registry of the built-in ops, to which programs add their own} */
  public static OpRegistry registry() {
    return REGISTRY;
  }

  static Stream<OpSpec> all() {
    return Stream.of(
            functional(),
            InPlaceOps.of(functional()),
            InPlaceOps.all(),
            CollectiveOps.all(),
            GuardOps.all(),
            HloOps.all(),
            RandomOps.all(),
            SymmMemOps.all(),
            SymplanOps.all())
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> functional() {
    return Stream.of(
            RealOps.of(AttentionOps.all()),
            RealOps.of(BatchNormOps.all()),
            RealOps.of(ConvolutionOps.all()),
            CopyOps.all(),
            CreationOps.all(),
            ElementwiseOps.all(),
            ForeachOps.all(),
            RealOps.of(GluOps.all()),
            IndexOps.all(),
            MaskOps.all(),
            MatrixOps.all(),
            RealOps.of(NormOps.all()),
            RealOps.of(OptimizerOps.all()),
            PadOps.all(),
            PartOps.all(),
            RealOps.of(PoolOps.all()),
            ReductionOps.all(),
            RealOps.of(SearchOps.all()),
            Slices.all(),
            RealOps.of(UpsampleOps.all()),
            ViewOps.all())
        .flatMap(specs -> specs);
  }
}
