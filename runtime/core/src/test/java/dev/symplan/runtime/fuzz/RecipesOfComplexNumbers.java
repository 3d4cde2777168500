package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpDef;
import java.util.function.Consumer;

/** Arguments of complex numbers, for ops that mostly get others. */
final class RecipesOfComplexNumbers {
  /** Their operands must fit each other in other ways. */
  private static final ImmutableSet<String> SHAPED =
      ImmutableSet.of("mm", "bmm", "complex", "polar", "where");

  private RecipesOfComplexNumbers() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(table, "complex", call -> pairs(call, "real", "imag"));
    Recipes.put(table, "polar", call -> pairs(call, "abs", "angle"));
    Recipes.put(table, "conj_physical", RecipesOfComplexNumbers::choose);
  }

  private static void pairs(Call call, String one, String other) {
    var dtype = call.sketch.pick(DType.F32, DType.F64);
    var first = call.main(one, type -> type.dtype() == dtype, dtype, call.sketch.shape());
    call.set(other, call.sketch.like(first));
  }

  static boolean suits(OpDef op) {
    return Composites.complexNames().contains(op.name().toString().replaceFirst("_(?=$|\\.)", ""))
        && !SHAPED.contains(op.name().name());
  }

  static void choose(Call call) {
    var dtype = call.sketch.chance(80) ? DType.C64 : DType.C128;
    var main =
        call.main(
            call.has("a") ? "a" : "self",
            type -> type.dtype() == dtype,
            dtype,
            call.sketch.shape());
    if (!call.def.name().overload().equals("Scalar") && call.sketch.chance(70)) {
      call.set("other", call.sketch.like(main));
    }
  }
}
