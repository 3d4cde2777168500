package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.List;
import java.util.function.Consumer;

/** Matrix products and attention. */
final class RecipesOfProducts {
  private RecipesOfProducts() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(table, "mm", c -> product(c, "self", "mat2", 2));
    Recipes.put(table, "bmm", c -> product(c, "self", "mat2", 3));
    Recipes.put(table, "addmm", c -> product(c, "mat1", "mat2", 2));
    Recipes.put(table, "baddbmm", c -> product(c, "batch1", "batch2", 3));
    Recipes.put(table, "addbmm", c -> product(c, "batch1", "batch2", 3));
    Recipes.put(
        table,
        "mv",
        c -> {
          var a = matrix(c, "self").tensor();
          c.set("vec", c.sketch.tensor(a.dtype(), a.size(1)));
        });
    Recipes.put(
        table,
        "addmv",
        c -> {
          var a = matrix(c, "mat").tensor();
          c.set("vec", c.sketch.tensor(a.dtype(), a.size(1)));
          target(c, a.dtype(), a.size(0));
        });
    Recipes.put(
        table,
        "dot outer",
        c -> {
          var a = c.mainOfRank("self", 1, 1).tensor();
          c.set("tensor", c.sketch.tensor(a.dtype(), a.size(0)));
          c.set("vec2", c.sketch.tensor(a.dtype(), c.sketch.dim()));
        });
    Recipes.put(
        table,
        "matmul",
        c -> {
          var a = c.mainOfRank("self", 1, 3).tensor();
          long inner = a.size(a.rank() - 1);
          c.set(
              "other",
              c.sketch.chance(30)
                  ? c.sketch.tensor(a.dtype(), inner)
                  : c.sketch.tensor(a.dtype(), inner, c.sketch.dim()));
        });
    Recipes.put(
        table,
        "linear",
        c -> {
          var a = c.floats("input", 1, 3).tensor();
          long out = c.sketch.dim();
          c.set("weight", c.sketch.tensor(a.dtype(), out, a.size(a.rank() - 1)));
          optional(c, "bias", a.dtype(), out);
        });
    Recipes.put(
        table,
        "_int_mm",
        c -> {
          long inner = c.sketch.dim();
          c.set("self", c.sketch.tensor(DType.I8, c.sketch.dim(), inner));
          c.set("mat2", c.sketch.tensor(DType.I8, inner, c.sketch.dim()));
        });
    Recipes.put(
        table,
        "_scaled_mm",
        c -> {
          long inner = c.sketch.dim();
          var dtype = c.sketch.pick(DType.F8E4M3FN, DType.F8E5M2);
          c.set("self", c.sketch.tensor(dtype, c.sketch.dim(), inner));
          c.set("mat2", c.sketch.tensor(dtype, inner, c.sketch.dim()));
          c.set("scale_a", c.sketch.tensor(DType.F32));
          c.set("scale_b", c.sketch.tensor(DType.F32));
          c.set("bias", Arg.None.NONE);
          c.set("scale_result", Arg.None.NONE);
          c.set("out_dtype", new Arg.Dtype(c.sketch.pick(DType.BF16, DType.F32)));
        });
    Recipes.put(table, "_grouped_mm", RecipesOfProducts::grouped);
    for (var name :
        List.of(
            "scaled_dot_product_attention",
            "_scaled_dot_product_efficient_attention",
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_cudnn_attention",
            "_scaled_dot_product_flash_attention_for_cpu")) {
      Recipes.put(table, name, RecipesOfProducts::attention);
      if (name.startsWith("_")) {
        Recipes.put(table, name + "_backward", c -> attentionBackward(c, name));
      }
    }
  }

  private static Value matrix(Call c, String param) {
    return c.mainOfRank(param, 2, 2);
  }

  private static void optional(Call c, String param, DType dtype, long... sizes) {
    if (c.sketch.chance(50)) {
      c.set(param, c.sketch.tensor(dtype, sizes));
    } else {
      c.set(param, Arg.None.NONE);
    }
  }

  private static void product(Call c, String left, String right, int rank) {
    var a = c.mainOfRank(left, rank, rank).tensor();
    long inner = a.size(rank - 1);
    long columns = c.sketch.dim();
    var b =
        rank == 2
            ? c.sketch.tensor(a.dtype(), inner, columns)
            : c.sketch.tensor(a.dtype(), a.size(0), inner, columns);
    c.set(right, b);
    var out = a.dtype();
    if (c.has("out_dtype")) {
      boolean narrow = a.dtype() == DType.F16 || a.dtype() == DType.BF16;
      out = narrow ? c.sketch.pick(DType.F32, a.dtype()) : a.dtype();
      c.set("out_dtype", new Arg.Dtype(out));
    }
    if (!left.equals("self")) {
      boolean batched = rank == 3 && !c.def.name().name().startsWith("addbmm");
      long rows = a.size(rank - 2);
      if (batched) {
        target(c, out, a.size(0), rows, columns);
      } else {
        target(c, out, rows, columns);
      }
    }
  }

  static void target(Call c, DType dtype, long... sizes) {
    if (c.writes("self")) {
      var clone =
          c.sketch.must("aten::clone", new Arg.Ref(c.sketch.tensor(dtype, sizes)), Arg.None.NONE);
      c.set("self", clone);
      return;
    }
    var own = sizes.clone();
    if (c.sketch.chance(30)) {
      own[c.sketch.random.nextInt(own.length)] = 1;
    }
    c.set("self", c.sketch.tensor(dtype, own));
  }

  private static void grouped(Call c) {
    var dtype = c.sketch.pick(DType.BF16, DType.F32, DType.F16);
    long groups = 1 + c.sketch.random.nextInt(3);
    long m = 1 + c.sketch.random.nextInt(5);
    long k = 1 + c.sketch.random.nextInt(5);
    long n = 1 + c.sketch.random.nextInt(5);
    int kind = c.sketch.random.nextInt(4);
    boolean batchedLeft = kind == 0 || kind == 1;
    boolean batchedRight = kind == 0 || kind == 2;
    c.set(
        "self", batchedLeft ? c.sketch.tensor(dtype, groups, m, k) : c.sketch.tensor(dtype, m, k));
    c.set(
        "mat2", batchedRight ? c.sketch.tensor(dtype, groups, k, n) : c.sketch.tensor(dtype, k, n));
    long end = batchedLeft ? n : batchedRight ? m : k;
    if (kind == 0) {
      c.set("offs", Arg.None.NONE);
    } else {
      c.set(
          "offs",
          c.sketch.input(TensorType.contiguous(DType.I32, groups), new Fill(Fill.Kind.ENDS, end)));
    }
    c.set("bias", Arg.None.NONE);
    c.set("out_dtype", Arg.None.NONE);
  }

  private static void attention(Call c) {
    boolean groups = false;
    long batch = 1 + c.sketch.random.nextInt(2);
    long heads = 1 + c.sketch.random.nextInt(3);
    long rows = 1 + c.sketch.random.nextInt(4);
    long keys = c.sketch.chance(50) ? rows : 1 + c.sketch.random.nextInt(5);
    long features = 1 + c.sketch.random.nextInt(6);
    var dtype = c.sketch.floatType();
    c.set("query", c.sketch.tensor(dtype, batch, heads, rows, features));
    c.set("key", c.sketch.tensor(dtype, batch, heads, keys, features));
    c.set("value", c.sketch.tensor(dtype, batch, heads, keys, features));
    c.set("enable_gqa", new Arg.Bool(groups));
    c.set("dropout_p", new Arg.Float(0));
    c.set("return_debug_mask", new Arg.Bool(false));
    c.set("compute_log_sumexp", new Arg.Bool(true));
    c.set("scale", c.sketch.chance(50) ? Arg.None.NONE : new Arg.Float(0.5));
    boolean mask = c.sketch.chance(40);
    c.set("is_causal", new Arg.Bool(!mask && c.sketch.chance(50)));
    for (var name : List.of("attn_mask", "attn_bias")) {
      if (mask && c.has(name)) {
        c.set(name, c.sketch.tensor(dtype, batch, heads, rows, keys));
      } else {
        c.set(name, Arg.None.NONE);
      }
    }
  }

  private static void attentionBackward(Call c, String forward) {
    var forwardDef = Sketch.op("aten::" + forward);
    var made = new Call(c.sketch, forwardDef);
    attention(made);
    if (c.has("attn_bias") && !c.isOptional("attn_bias")) {
      var query = ((Arg.Ref) made.arg("query")).value().tensor();
      var key = ((Arg.Ref) made.arg("key")).value().tensor();
      made.set("is_causal", new Arg.Bool(false));
      made.set(
          "attn_bias",
          c.sketch.tensor(query.dtype(), query.size(0), query.size(1), query.size(2), key.size(2)));
    }
    var results = c.sketch.apply(forwardDef, made.finish(), true);
    if (results.isEmpty()) {
      return;
    }
    for (var name :
        List.of("query", "key", "value", "attn_bias", "attn_mask", "is_causal", "scale")) {
      c.set(name, made.arg(name));
    }
    c.set("dropout_p", new Arg.Float(0));
    c.set("grad_input_mask", new Arg.Seq(mask(c)));
    var out = results.get().get(0);
    for (var name : List.of("grad_out", "grad_out_")) {
      if (c.has(name)) {
        c.set(name, c.sketch.like(out));
      }
    }
    c.set("out", out);
    c.set("logsumexp", results.get().get(1));
    boolean flash = forward.endsWith("flash_attention") || forward.contains("cudnn");
    if (flash) {
      for (var name : List.of("cum_seq_q", "cum_seq_k")) {
        c.set(name, c.sketch.tensor(DType.I32, 1));
      }
      c.set("max_q", out.tensor().size(2));
      c.set("max_k", ((Arg.Ref) made.arg("key")).value().tensor().size(2));
    }
    for (var name : List.of("philox_seed", "philox_offset")) {
      if (c.has(name)) {
        c.set(name, c.sketch.tensor(DType.I64));
      }
    }
  }

  private static ImmutableList<Arg> mask(Call c) {
    return ImmutableList.of(
        new Arg.Bool(true),
        new Arg.Bool(true),
        new Arg.Bool(true),
        new Arg.Bool(c.sketch.chance(50)));
  }
}
