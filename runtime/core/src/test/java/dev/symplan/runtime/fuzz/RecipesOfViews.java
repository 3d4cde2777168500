package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** Ops that see memory in another way, or write into a part of it. */
final class RecipesOfViews {
  private RecipesOfViews() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(
        table,
        "view _unsafe_view reshape",
        c -> {
          var self = c.main("self");
          var sizes = Recipes.regrouped(c.sketch, self.tensor().sizes());
          c.set(c.has("size") ? "size" : "shape", Call.list(sizes));
        });
    Recipes.put(
        table,
        "_reshape_alias",
        c -> {
          var type = rows(c).tensor();
          var sizes = Recipes.regrouped(c.sketch, type.sizes());
          c.set("size", Call.list(sizes));
          c.set("stride", Call.list(TensorType.contiguousStrides(sizes)));
        });
    Recipes.put(
        table,
        "expand broadcast_to",
        c -> {
          var type = c.main("self").tensor();
          var sizes = type.sizes().toArray();
          for (int i = 0; i < sizes.length; i++) {
            sizes[i] = sizes[i] == 1 ? c.sketch.pick(1L, 2L, 3L) : sizes[i];
          }
          c.set(
              "size",
              c.sketch.chance(40)
                  ? Call.list(Recipes.prepend(sizes, 1 + c.sketch.random.nextInt(3)))
                  : Call.list(sizes));
        });
    Recipes.put(
        table,
        "expand_as view_as reshape_as",
        c -> {
          var type = c.main("self").tensor();
          var sizes =
              c.def.name().name().equals("expand_as")
                  ? ImmutableLongArray.copyOf(
                      Arrays.stream(type.sizes().toArray()).map(s -> s == 1 ? 3 : s).toArray())
                  : Recipes.regrouped(c.sketch, type.sizes());
          c.set("other", c.sketch.tensor(type.dtype(), sizes));
        });
    Recipes.put(
        table,
        "permute",
        c -> {
          var type = c.main("self").tensor();
          c.setAll("dims", Arrays.stream(c.sketch.order(type.rank())).mapToLong(i -> i).toArray());
        });
    Recipes.put(
        table,
        "bitcast",
        c -> {
          var type = c.main("self").tensor();
          var seen =
              type.isContiguous()
                  ? TensorType.contiguous(type.dtype(), Recipes.regrouped(c.sketch, type.sizes()))
                  : type.withSpace(MemorySpace.ANY);
          c.set("results", new Arg.Seq(ImmutableList.of(new Arg.Str(seen.toString()))));
        });
    Recipes.put(
        table,
        "movedim.intlist",
        c -> {
          var type = c.main("self").tensor();
          int count = type.rank() == 0 ? 0 : 1 + c.sketch.random.nextInt(type.rank());
          c.setAll("source", Recipes.first(c.sketch.order(type.rank()), count));
          c.setAll("destination", Recipes.first(c.sketch.order(type.rank()), count));
        });
    Recipes.put(
        table,
        "movedim.int",
        c -> {
          var type = c.main("self").tensor();
          c.setDim("source", type);
          c.setDim("destination", type);
        });
    Recipes.put(
        table,
        "as_strided as_strided_scatter",
        c -> {
          var self = rows(c);
          long left = self.tensor().numel() - 1;
          if (left < 0) {
            c.setAll("size", 0);
            c.setAll("stride", 1);
            c.set("storage_offset", 0);
            return;
          }
          int rank = c.sketch.random.nextInt(4);
          var sizes = new long[rank];
          var strides = new long[rank];
          long offset = Math.max(0, left) == 0 ? 0 : c.sketch.random.nextLong(left + 1) / 2;
          left -= offset;
          for (int i = 0; i < rank; i++) {
            strides[i] = c.sketch.random.nextInt(5);
            long most = strides[i] == 0 ? 3 : 1 + left / strides[i];
            sizes[i] = 1 + c.sketch.random.nextLong(Math.min(6, most));
            left -= (sizes[i] - 1) * strides[i];
          }
          boolean scatter = c.def.name().name().endsWith("scatter");
          if (left < 0
              || (scatter
                  && !Sketch.hasNoOverlap(
                      new TensorType(
                          DType.F32,
                          ImmutableLongArray.copyOf(sizes),
                          ImmutableLongArray.copyOf(strides),
                          MemorySpace.ANY)))) {
            sizes = new long[] {1};
            strides = new long[] {1};
          }
          c.setAll("size", sizes);
          c.setAll("stride", strides);
          c.set("storage_offset", offset);
          c.set("src", c.sketch.tensor(self.tensor().dtype(), sizes));
        });
    Recipes.put(
        table,
        "select select_scatter select_backward",
        c -> {
          var type = sliced(c);
          int dim = c.anyDim(type);
          if (type.rank() > 0 && type.size(dim) > 0) {
            long index = c.sketch.random.nextLong(type.size(dim));
            c.set("dim", dim);
            c.set("index", c.sketch.chance(25) ? index - type.size(dim) : index);
            part(c, type, Recipes.without(type.sizes(), dim));
          }
        });
    Recipes.put(
        table,
        "slice slice_scatter slice_backward",
        c -> {
          var type = sliced(c);
          int dim = c.anyDim(type);
          if (type.rank() > 0) {
            long size = type.size(dim);
            long start = size == 0 ? 0 : c.sketch.random.nextLong(size + 1);
            long end = start + c.sketch.random.nextLong(size - start + 1);
            long step = c.sketch.pick(1L, 1L, 1L, 2L, 3L);
            c.set("dim", dim);
            c.set("start", start);
            c.set("end", c.sketch.chance(30) ? Long.MAX_VALUE : end);
            end = c.arg("end") instanceof Arg.Int(long e) ? Math.min(e, size) : end;
            c.set("step", step);
            part(
                c,
                type,
                Recipes.with(type.sizes(), dim, Math.max(0, (end - start + step - 1) / step)));
          }
        });
    Recipes.put(
        table,
        "narrow",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          long start = c.sketch.random.nextLong(type.size(dim) + 1);
          c.set("start", start);
          c.set("length", c.sketch.random.nextLong(type.size(dim) - start + 1));
        });
    Recipes.put(
        table,
        "diagonal diagonal_scatter diag_embed",
        c -> {
          var type = c.mainOfRank("self", 2, 4).tensor();
          int dim = c.sketch.random.nextInt(type.rank() - 1);
          c.set("dim1", dim);
          c.set("dim2", dim + 1);
          long offset = c.sketch.random.nextInt(-1, 2);
          c.set("offset", offset);
          long a = type.size(dim);
          long b = type.size(dim + 1);
          long count = Math.max(0, offset >= 0 ? Math.min(a, b - offset) : Math.min(a + offset, b));
          var rest = Recipes.without(Recipes.without(type.sizes(), dim + 1), dim).toArray();
          var sizes = Arrays.copyOf(rest, rest.length + 1);
          sizes[rest.length] = count;
          c.set("src", c.sketch.tensor(type.dtype(), sizes));
        });
    Recipes.put(
        table,
        "split.Tensor unsafe_split",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          c.set("split_size", Math.max(1, c.sketch.random.nextLong(type.size(dim) + 1)));
        });
    Recipes.put(
        table,
        "split.sizes split_with_sizes unsafe_split_with_sizes",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          long first = c.sketch.random.nextLong(type.size(dim) + 1);
          c.setAll(
              c.has("split_size") ? "split_size" : "split_sizes", first, type.size(dim) - first);
        });
    Recipes.put(
        table,
        "chunk unsafe_chunk tensor_split.sections",
        c -> {
          c.setDim("dim", c.mainOfRank("self", 1, 4).tensor());
          c.set(c.has("chunks") ? "chunks" : "sections", 1 + c.sketch.random.nextInt(4));
        });
    Recipes.put(
        table,
        "tensor_split.indices",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          c.setAll("indices", c.sketch.random.nextLong(type.size(dim) + 1));
        });
    Recipes.put(
        table,
        "unfold",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.anyDim(type);
          c.set("dimension", dim);
          c.set("size", c.sketch.random.nextLong(type.size(dim) + 1));
          c.set("step", 1 + c.sketch.random.nextInt(3));
        });
    Recipes.put(
        table,
        "unflatten",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.anyDim(type);
          c.set("dim", dim);
          c.set(
              "sizes",
              Call.list(Recipes.regrouped(c.sketch, ImmutableLongArray.of(type.size(dim)))));
        });
    Recipes.put(
        table,
        "flatten",
        c -> {
          var type = c.main("self").tensor();
          int start = c.anyDim(type);
          c.set("start_dim", start);
          c.set("end_dim", start + c.sketch.random.nextInt(Math.max(1, type.rank() - start)));
        });
    Recipes.put(table, "t", c -> c.mainOfRank("self", 0, 2));
    Recipes.put(table, "numpy_T mT", c -> c.mainOfRank("self", 2, 2));
    Recipes.put(
        table,
        "view.dtype",
        c -> {
          // Bits of floats that a NaN may have are nobody's promise.
          var self =
              c.main(
                  "self",
                  t -> !t.dtype().isFloat() && t.rank() > 0,
                  c.sketch.pick(DType.I64, DType.U8, DType.I32),
                  c.sketch.shape(2));
          c.set(
              "dtype",
              new Arg.Dtype(
                  self.tensor().dtype() == DType.BOOL
                      ? DType.U8
                      : c.sketch.pick(DType.I64, DType.I32, DType.U8, DType.I8)));
        });
    Recipes.put(
        table, "view_as_real", c -> c.set("self", c.sketch.tensor(DType.C64, c.sketch.shape(2))));
    Recipes.put(
        table,
        "view_as_complex",
        c ->
            c.set("self", c.sketch.tensor(c.sketch.pick(DType.F32, DType.F64), c.sketch.dim(), 2)));
    Recipes.put(
        table,
        "to.other type_as",
        c -> {
          c.main("self");
          c.set("other", c.sketch.any());
        });
  }

  /** Rows one after the other, whose memory holds nothing else. */
  private static Value rows(Call c) {
    var there = c.sketch.uniform(TensorType::isContiguous).filter(v -> !c.sketch.isAmongGaps(v));
    return c.set(
        "self",
        there.orElseGet(
            () ->
                c.sketch.input(
                    TensorType.contiguous(c.sketch.dtype(), c.sketch.shape()), Fill.ANY)));
  }

  /** The shape that a slice is taken of, or put into. */
  private static TensorType sliced(Call c) {
    if (c.has("grad_output")) {
      var sizes = c.sketch.shape(1 + c.sketch.random.nextInt(3));
      c.setAll("input_sizes", sizes);
      return TensorType.contiguous(c.sketch.dtype(), sizes);
    }
    return c.mainOfRank("self", 1, 4).tensor();
  }

  private static void part(Call c, TensorType of, ImmutableLongArray sizes) {
    for (var name : List.of("src", "grad_output")) {
      if (c.has(name)) {
        c.set(name, c.sketch.tensor(of.dtype(), sizes));
      }
    }
  }
}
