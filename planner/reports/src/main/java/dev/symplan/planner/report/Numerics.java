package dev.symplan.planner.report;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Variant;

/** In which order a collective adds, and in which type: what its bits depend on. */
final class Numerics {
  private static final ImmutableSet<Variant> OF_THE_LIBRARY =
      ImmutableSet.of(Variant.NCCL, Variant.NCCL_SYMM);

  private Numerics() {}

  static String of(Kind kind, Variant variant, DType dtype) {
    if (kind == Kind.CUSTOM) {
      return "defined by its implementation";
    }
    if (kind != Kind.ALL_REDUCE && kind != Kind.REDUCE_SCATTER) {
      return "bit-exact copy";
    }
    if (variant == Variant.LOCAL) {
      return "one rank: a copy";
    }
    if (variant == Variant.MULTIMEM) {
      return "in the switch's order, in " + accumulator(dtype);
    }
    if (OF_THE_LIBRARY.contains(variant)) {
      return "in NCCL's order and type";
    }
    return "in rank order, in %s, rounded once".formatted(accumulator(dtype));
  }

  private static String accumulator(DType dtype) {
    return dtype.isFloat() && dtype.bytes() < 4 ? "f32" : dtype.shortName();
  }
}
