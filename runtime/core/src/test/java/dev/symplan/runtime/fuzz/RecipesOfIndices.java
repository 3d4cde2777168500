package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.function.Consumer;

/** Ops that take indices: inputs of numbers that are in range. */
final class RecipesOfIndices {
  private RecipesOfIndices() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(
        table,
        "embedding",
        c -> {
          var weight = c.mainOfRank("weight", 2, 2).tensor();
          c.set("indices", c.index(weight.size(0), places(c, weight.size(0))));
          c.set("padding_idx", -1);
        });
    Recipes.put(
        table,
        "embedding_dense_backward",
        c -> {
          var grad = c.floats("grad_output", 2, 3).tensor();
          long rows = 1 + c.sketch.random.nextInt(6);
          c.set("indices", c.index(rows, grad.sizes().subArray(0, grad.rank() - 1).toArray()));
          c.set("num_weights", rows);
          c.set("padding_idx", -1);
        });
    Recipes.put(
        table,
        "one_hot",
        c -> {
          c.set("self", c.sketch.input(DType.I64, c.sketch.shape(1), Fill.index(4)));
          c.set("num_classes", 4);
        });
    Recipes.put(table, "index _unsafe_index", c -> indices(c, c.mainOfRank("self", 1, 3).tensor()));
    Recipes.put(
        table,
        "index_put _unsafe_index_put",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          indices(c, type);
          c.set("values", c.sketch.tensor(type.dtype()));
        });
    Recipes.put(
        table,
        "index_select index_fill.int_Scalar",
        c -> vector(c, c.mainOfRank("self", 1, 3).tensor()));
    Recipes.put(
        table,
        "index_add index_copy",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.setDim("dim", type);
          long count = type.size(dim) == 0 ? 0 : c.sketch.random.nextInt(1, 5);
          c.set("index", c.index(type.size(dim), count));
          c.set("source", c.sketch.tensor(type.dtype(), Recipes.with(type.sizes(), dim, count)));
        });
    Recipes.put(
        table,
        "gather scatter scatter_add scatter_reduce",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.setDim("dim", type);
          var sizes = type.sizes().toArray();
          Arrays.setAll(sizes, i -> sizes[i] == 0 ? 0 : 1 + c.sketch.random.nextLong(sizes[i]));
          c.set("index", c.index(type.size(dim), sizes));
          if (Recipes.isTensor(c, "src")) {
            c.set("src", c.sketch.tensor(type.dtype(), sizes));
          }
        });
    Recipes.put(
        table,
        "take",
        c -> {
          var type = c.main("self").tensor();
          c.set("index", c.index(type.numel(), places(c, type.numel())));
        });
    Recipes.put(
        table,
        "masked_scatter",
        c -> {
          var type = c.main("self").tensor();
          c.set("mask", c.sketch.tensor(DType.BOOL, type.sizes()));
          c.set("source", c.sketch.tensor(type.dtype(), type.sizes()));
        });
    Recipes.put(
        table,
        "masked_scatter_backward",
        c -> {
          var type = c.main("grad_output").tensor();
          c.set("mask", c.sketch.tensor(DType.BOOL, type.sizes()));
          // Room for all, as the source of the forward op has it.
          c.set("sizes", new Arg.Seq(ImmutableList.of(new Arg.Int(type.numel()))));
        });
    Recipes.put(
        table,
        "bucketize",
        c -> {
          c.main("self");
          c.set("boundaries", sorted(c, 1 + c.sketch.random.nextInt(6)));
        });
    Recipes.put(
        table,
        "searchsorted",
        c -> {
          var sequence = sorted(c, 1 + c.sketch.random.nextInt(6));
          c.set("sorted_sequence", sequence);
          c.set("self", c.sketch.tensor(sequence.tensor().dtype(), c.sketch.shape(2)));
          c.set("sorter", Arg.None.NONE);
          c.set("side", Arg.None.NONE);
        });
  }

  private static Value sorted(Call c, long count) {
    return c.sketch.input(
        TensorType.contiguous(c.sketch.pick(DType.F32, DType.I64), count),
        Fill.of(Fill.Kind.SORTED));
  }

  private static long[] places(Call c, long bound) {
    return bound == 0 ? new long[] {0} : c.sketch.shape(c.sketch.random.nextInt(3));
  }

  static void vector(Call c, TensorType type) {
    int dim = c.setDim("dim", type);
    long size = type.rank() == 0 ? 1 : type.size(dim);
    c.set("index", c.index(size, size == 0 ? 0 : c.sketch.random.nextInt(1, 5)));
  }

  private static void indices(Call c, TensorType type) {
    var items = new ArrayList<Arg>();
    long count = c.sketch.random.nextInt(1, 4);
    for (int i = 0; i < type.rank(); i++) {
      if (c.sketch.chance(40)) {
        items.add(Arg.None.NONE);
      } else {
        items.add(
            new Arg.Ref(c.index(type.size(i), type.size(i) == 0 ? 0 : c.sketch.pick(1L, count))));
      }
    }
    c.set("indices", new Arg.Seq(ImmutableList.copyOf(items)));
  }
}
