package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.SchemaType;
import java.util.function.Consumer;

/** Arguments of complex numbers, for ops that mostly get others. */
final class RecipesOfComplexNumbers {
  /** Their operands are real, or choose between others. */
  private static final ImmutableSet<String> OTHERS =
      ImmutableSet.of("complex", "polar", "where", "copy");

  /** Those of ours that do to both parts what they do to real numbers, and need no indices. */
  private static final ImmutableSet<String> BY_PARTS =
      ImmutableSet.of("cumsum", "tril", "triu", "zeros_like", "ones_like", "full_like", "fill");

  private RecipesOfComplexNumbers() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(table, "complex", call -> pairs(call, "real", "imag"));
    Recipes.put(table, "polar", call -> pairs(call, "abs", "angle"));
    Recipes.put(table, "conj_physical _conj", RecipesOfComplexNumbers::choose);
    Recipes.put(
        table,
        "vdot",
        call -> {
          var self = call.mainOfRank("self", 1, 1).tensor();
          call.set("other", call.sketch.tensor(self.dtype(), self.size(0)));
        });
  }

  private static void pairs(Call call, String one, String other) {
    var dtype = call.sketch.pick(DType.F32, DType.F64);
    var first = call.main(one, type -> type.dtype() == dtype, dtype, call.sketch.shape());
    call.set(other, call.sketch.like(first));
  }

  static boolean suits(OpDef op) {
    var functional = op.name().toString().replaceFirst("_(?=$|\\.)", "");
    return (Composites.complexNames().contains(functional)
            || BY_PARTS.contains(op.name().name().replaceFirst("_$", "")))
        && !OTHERS.contains(op.name().name());
  }

  static void choose(Call call) {
    var dtype = call.sketch.chance(80) ? DType.C64 : DType.C128;
    if (product(call, dtype)) {
      return;
    }
    var params = call.def.schema().params();
    var first =
        params.stream()
            .filter(param -> param.type() == SchemaType.Base.TENSOR)
            .findFirst()
            .orElseThrow()
            .name();
    var main = call.main(first, type -> type.dtype() == dtype, dtype, call.sketch.shape());
    for (var param : params) {
      boolean other = param.type() == SchemaType.Base.TENSOR && !param.name().equals(first);
      // Some fit by chance only, and real numbers are among them.
      if (other && call.sketch.chance(80)) {
        call.set(param.name(), call.sketch.like(main));
      } else if (param.name().equals("dim") && param.type() == SchemaType.Base.INT) {
        call.setDim("dim", main.tensor());
      }
    }
  }

  /** Chooses operands of a product, whose shapes must fit. */
  private static boolean product(Call call, DType dtype) {
    long b = call.sketch.dim();
    long m = call.sketch.dim();
    long k = call.sketch.dim();
    long n = call.sketch.dim();
    switch (call.def.name().name().replaceFirst("_$", "")) {
      case "mm" -> tensors(call, dtype, "self", sizes(m, k), "mat2", sizes(k, n));
      case "bmm" -> tensors(call, dtype, "self", sizes(b, m, k), "mat2", sizes(b, k, n));
      case "mv" -> tensors(call, dtype, "self", sizes(m, k), "vec", sizes(k));
      case "dot" -> tensors(call, dtype, "self", sizes(k), "tensor", sizes(k));
      case "vdot" -> tensors(call, dtype, "self", sizes(k), "other", sizes(k));
      case "outer" -> tensors(call, dtype, "self", sizes(m), "vec2", sizes(n));
      case "matmul" -> tensors(call, dtype, "self", sizes(b, m, k), "other", sizes(k, n));
      case "linear" -> {
        tensors(call, dtype, "input", sizes(b, k), "weight", sizes(n, k));
        call.set("bias", call.sketch.tensor(dtype, n));
      }
      case "addmm" -> added(call, dtype, "mat1", sizes(m, k), "mat2", sizes(k, n), m, n);
      case "addmv" -> added(call, dtype, "mat", sizes(m, k), "vec", sizes(k), m);
      case "addbmm" -> added(call, dtype, "batch1", sizes(b, m, k), "batch2", sizes(b, k, n), m, n);
      case "baddbmm" ->
          added(call, dtype, "batch1", sizes(b, m, k), "batch2", sizes(b, k, n), b, m, n);
      default -> {
        return false;
      }
    }
    return true;
  }

  private static long[] sizes(long... sizes) {
    return sizes;
  }

  private static void tensors(
      Call call, DType dtype, String left, long[] rows, String right, long[] columns) {
    call.set(left, call.sketch.tensor(dtype, rows));
    call.set(right, call.sketch.tensor(dtype, columns));
  }

  private static void added(
      Call call,
      DType dtype,
      String left,
      long[] rows,
      String right,
      long[] columns,
      long... sizes) {
    tensors(call, dtype, left, rows, right, columns);
    RecipesOfProducts.target(call, dtype, sizes);
  }
}
