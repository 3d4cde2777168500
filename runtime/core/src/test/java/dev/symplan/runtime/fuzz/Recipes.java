package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** How to choose arguments that fit each other, for ops that need more than any tensors. */
final class Recipes {
  private static final ImmutableMap<String, Consumer<Call>> TABLE = table();

  private Recipes() {}

  /** {@return arguments for an op; the rule may still refuse them} */
  static ImmutableList<Arg> args(Sketch sketch, OpDef def) {
    var call = new Call(sketch, def);
    var name = def.name();
    var base = name.name().replaceFirst("(?<=[a-zA-Z0-9])_$", "");
    var recipe = TABLE.get(base + "." + name.overload());
    if (recipe == null) {
      recipe = TABLE.get(base);
    }
    if (recipe != null) {
      recipe.accept(call);
    }
    return call.finish();
  }

  private static ImmutableMap<String, Consumer<Call>> table() {
    var table = ImmutableMap.<String, Consumer<Call>>builder();
    views(table);
    shapes(table);
    RecipesOfProducts.add(table);
    RecipesOfIndices.add(table);
    RecipesOfNorms.add(table);
    numbers(table);
    return table.buildOrThrow();
  }

  static void put(
      ImmutableMap.Builder<String, Consumer<Call>> table, String names, Consumer<Call> recipe) {
    for (var name : names.split(" ")) {
      table.put(name, recipe);
    }
  }

  private static void views(ImmutableMap.Builder<String, Consumer<Call>> table) {
    put(
        table,
        "view _unsafe_view reshape",
        c -> {
          var self = c.main("self");
          var sizes = regrouped(c.sketch, self.tensor().sizes());
          c.set(c.has("size") ? "size" : "shape", Call.list(sizes));
        });
    put(
        table,
        "_reshape_alias",
        c -> {
          var type = rows(c).tensor();
          var sizes = regrouped(c.sketch, type.sizes());
          c.set("size", Call.list(sizes));
          c.set("stride", Call.list(TensorType.contiguousStrides(sizes)));
        });
    put(
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
                  ? Call.list(prepend(sizes, 1 + c.sketch.random.nextInt(3)))
                  : Call.list(sizes));
        });
    put(
        table,
        "expand_as view_as reshape_as",
        c -> {
          var type = c.main("self").tensor();
          var sizes =
              c.def.name().name().equals("expand_as")
                  ? ImmutableLongArray.copyOf(
                      Arrays.stream(type.sizes().toArray()).map(s -> s == 1 ? 3 : s).toArray())
                  : regrouped(c.sketch, type.sizes());
          c.set("other", c.sketch.tensor(type.dtype(), sizes));
        });
    put(
        table,
        "permute",
        c -> {
          var type = c.main("self").tensor();
          c.setAll("dims", Arrays.stream(c.sketch.order(type.rank())).mapToLong(i -> i).toArray());
        });
    put(
        table,
        "movedim.intlist",
        c -> {
          var type = c.main("self").tensor();
          int count = type.rank() == 0 ? 0 : 1 + c.sketch.random.nextInt(type.rank());
          c.setAll("source", first(c.sketch.order(type.rank()), count));
          c.setAll("destination", first(c.sketch.order(type.rank()), count));
        });
    put(
        table,
        "movedim.int",
        c -> {
          var type = c.main("self").tensor();
          c.setDim("source", type);
          c.setDim("destination", type);
        });
    put(
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
                          dev.symplan.ir.MemorySpace.ANY)))) {
            sizes = new long[] {1};
            strides = new long[] {1};
          }
          c.setAll("size", sizes);
          c.setAll("stride", strides);
          c.set("storage_offset", offset);
          c.set("src", c.sketch.tensor(self.tensor().dtype(), sizes));
        });
    put(
        table,
        "select select_scatter select_backward",
        c -> {
          var type = sliced(c);
          int dim = c.anyDim(type);
          if (type.rank() > 0 && type.size(dim) > 0) {
            long index = c.sketch.random.nextLong(type.size(dim));
            c.set("dim", dim);
            c.set("index", c.sketch.chance(25) ? index - type.size(dim) : index);
            part(c, type, without(type.sizes(), dim));
          }
        });
    put(
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
            part(c, type, with(type.sizes(), dim, Math.max(0, (end - start + step - 1) / step)));
          }
        });
    put(
        table,
        "narrow",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          long start = c.sketch.random.nextLong(type.size(dim) + 1);
          c.set("start", start);
          c.set("length", c.sketch.random.nextLong(type.size(dim) - start + 1));
        });
    put(
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
          var rest = without(without(type.sizes(), dim + 1), dim).toArray();
          var sizes = Arrays.copyOf(rest, rest.length + 1);
          sizes[rest.length] = count;
          c.set("src", c.sketch.tensor(type.dtype(), sizes));
        });
    put(
        table,
        "split.Tensor unsafe_split",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          c.set("split_size", Math.max(1, c.sketch.random.nextLong(type.size(dim) + 1)));
        });
    put(
        table,
        "split.sizes split_with_sizes unsafe_split_with_sizes",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          long first = c.sketch.random.nextLong(type.size(dim) + 1);
          c.setAll(
              c.has("split_size") ? "split_size" : "split_sizes", first, type.size(dim) - first);
        });
    put(
        table,
        "chunk unsafe_chunk tensor_split.sections",
        c -> {
          c.setDim("dim", c.mainOfRank("self", 1, 4).tensor());
          c.set(c.has("chunks") ? "chunks" : "sections", 1 + c.sketch.random.nextInt(4));
        });
    put(
        table,
        "tensor_split.indices",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          int dim = c.setDim("dim", type);
          c.setAll("indices", c.sketch.random.nextLong(type.size(dim) + 1));
        });
    put(
        table,
        "unfold",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.anyDim(type);
          c.set("dimension", dim);
          c.set("size", c.sketch.random.nextLong(type.size(dim) + 1));
          c.set("step", 1 + c.sketch.random.nextInt(3));
        });
    put(
        table,
        "unflatten",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.anyDim(type);
          c.set("dim", dim);
          c.set("sizes", Call.list(regrouped(c.sketch, ImmutableLongArray.of(type.size(dim)))));
        });
    put(
        table,
        "flatten",
        c -> {
          var type = c.main("self").tensor();
          int start = c.anyDim(type);
          c.set("start_dim", start);
          c.set("end_dim", start + c.sketch.random.nextInt(Math.max(1, type.rank() - start)));
        });
    put(table, "t", c -> c.mainOfRank("self", 0, 2));
    put(table, "numpy_T mT", c -> c.mainOfRank("self", 2, 2));
    put(
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
    put(table, "view_as_real", c -> c.set("self", c.sketch.tensor(DType.C64, c.sketch.shape(2))));
    put(
        table,
        "view_as_complex",
        c ->
            c.set("self", c.sketch.tensor(c.sketch.pick(DType.F32, DType.F64), c.sketch.dim(), 2)));
    put(
        table,
        "to.other type_as",
        c -> {
          c.main("self");
          c.set("other", c.sketch.any());
        });
  }

  /** Rows one behind the other, whose memory holds nothing else. */
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

  private static void shapes(ImmutableMap.Builder<String, Consumer<Call>> table) {
    put(
        table,
        "cat concat",
        c -> {
          var first = c.sketch.any();
          var type = first.tensor();
          int dim = c.anyDim(type);
          var all = new ArrayList<>(List.of(first));
          for (int i = c.sketch.random.nextInt(3); i > 0; i--) {
            var sizes = type.rank() == 0 ? type.sizes() : with(type.sizes(), dim, c.sketch.dim());
            all.add(c.sketch.tensor(c.sketch.chance(85) ? type.dtype() : c.sketch.dtype(), sizes));
          }
          c.set("tensors", Call.refs(all));
          c.set("dim", dim);
        });
    put(
        table,
        "stack",
        c -> {
          var first = c.sketch.any();
          c.set("tensors", Call.refs(List.of(first, c.sketch.like(first))));
          c.set("dim", c.sketch.random.nextInt(first.tensor().rank() + 1));
        });
    put(
        table,
        "constant_pad_nd pad",
        c -> {
          var type = c.mainOfRank("self", 1, 4).tensor();
          var pads = new long[2 * (1 + c.sketch.random.nextInt(type.rank()))];
          Arrays.setAll(pads, i -> c.sketch.random.nextInt(-1, 3));
          c.setAll("pad", pads);
        });
    put(
        table,
        "repeat tile",
        c -> {
          var type = c.main("self").tensor();
          var times = new long[type.rank() + c.sketch.random.nextInt(2)];
          Arrays.setAll(times, i -> c.sketch.random.nextInt(1, 3));
          c.setAll(c.has("repeats") ? "repeats" : "dims", times);
        });
    put(
        table,
        "repeat_interleave.self_int",
        c -> {
          var type = c.main("self").tensor();
          c.set("repeats", 1 + c.sketch.random.nextInt(3));
          c.set("dim", c.sketch.chance(40) ? Arg.None.NONE : new Arg.Int(c.anyDim(type)));
          c.set("output_size", Arg.None.NONE);
        });
    put(
        table,
        "repeat_interleave.self_Tensor",
        c -> {
          var type = c.mainOfRank("self", 1, 3).tensor();
          int dim = c.anyDim(type);
          long times = c.sketch.random.nextInt(3);
          c.set(
              "repeats",
              c.sketch.input(
                  DType.I64, new long[] {type.size(dim)}, new Fill(Fill.Kind.TIMES, times)));
          c.set("dim", dim);
          c.set("output_size", times * type.size(dim));
        });
    put(
        table,
        "roll",
        c -> {
          var type = c.main("self").tensor();
          int count = type.rank() == 0 ? 0 : 1 + c.sketch.random.nextInt(type.rank());
          var shifts = new long[count];
          Arrays.setAll(shifts, i -> c.sketch.random.nextInt(-3, 4));
          c.setAll("shifts", shifts);
          c.setAll("dims", first(c.sketch.order(type.rank()), count));
        });
    put(
        table,
        "topk",
        c -> {
          var type = c.main("self").tensor();
          int dim = c.setDim("dim", type);
          c.set("k", type.rank() == 0 ? 1 : c.sketch.random.nextLong(type.size(dim) + 1));
        });
    put(
        table,
        "empty_strided new_empty_strided",
        c -> {
          if (c.has("self")) {
            c.main("self");
          }
          var sizes = c.sketch.shape(2);
          c.setAll("size", sizes);
          c.setAll("stride", sizes[1], 1);
        });
    put(
        table,
        "empty_permuted",
        c -> {
          c.setAll("size", c.sketch.shape(3));
          c.setAll("physical_layout", first(c.sketch.order(3), 3));
        });
    put(
        table,
        "inductor_force_stride_order",
        c -> {
          var type = c.main("input").tensor();
          c.setAll("stride", first(c.sketch.order(type.rank()), type.rank()));
        });
    put(table, "tril triu", c -> c.mainOfRank("self", 2, 3));
    put(
        table,
        "arange",
        c -> {
          c.set("start", c.sketch.random.nextInt(-3, 2));
          c.set("end", 2 + c.sketch.random.nextInt(9));
          c.set("step", 1 + c.sketch.random.nextInt(3));
        });
    put(
        table,
        "iota",
        c -> {
          c.set("length", c.sketch.random.nextInt(9));
          c.set("start", c.sketch.random.nextInt(-3, 2));
          c.set("step", 1 + c.sketch.random.nextInt(3));
          c.set("requires_grad", new Arg.Bool(false));
          c.set("dtype", new Arg.Dtype(c.sketch.pick(DType.I64, DType.I32)));
        });
    put(table, "linspace", c -> c.set("steps", c.sketch.random.nextInt(9)));
    put(
        table,
        "tril_indices triu_indices",
        c -> {
          c.set("row", c.sketch.random.nextInt(6));
          c.set("col", c.sketch.random.nextInt(6));
          c.set("dtype", new Arg.Dtype(DType.I64));
        });
    put(
        table,
        "eye",
        c -> {
          c.set("n", c.sketch.random.nextInt(7));
          c.set("m", c.sketch.random.nextInt(7));
        });
  }

  private static void numbers(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Consumer<Call> division =
        c -> {
          if (c.has("self") && isTensor(c, "self")) {
            c.main("self");
          }
          if (isTensor(c, "other")) {
            var dtype = c.sketch.dtype();
            var sizes =
                c.arg("self") instanceof Arg.Ref(Value self)
                    ? self.tensor().sizes().toArray()
                    : c.sketch.shape();
            c.set("other", c.sketch.input(dtype, sizes, Fill.of(Fill.Kind.POSITIVE)));
          }
        };
    put(
        table,
        "div.Tensor_mode floor_divide remainder.Tensor remainder.Scalar_Tensor fmod.Tensor",
        division);
    put(
        table,
        "bitwise_left_shift.Tensor bitwise_right_shift.Tensor",
        c -> {
          var self =
              c.main("self", t -> !t.dtype().isFloat() && t.dtype() != DType.BOOL, DType.I32, 3, 5);
          c.set(
              "other",
              c.sketch.input(
                  self.tensor().dtype(), self.tensor().sizes().toArray(), Fill.index(6)));
        });
    put(
        table,
        "bitwise_left_shift.Scalar_Tensor bitwise_right_shift.Scalar_Tensor",
        c -> c.set("other", c.sketch.input(DType.I64, c.sketch.shape(), Fill.index(6))));
    put(
        table,
        "bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar",
        c -> c.set("other", c.sketch.random.nextInt(6)));
    put(table, "pow.Tensor_Scalar", c -> c.set("exponent", c.sketch.pick(0, 1, 2, 3)));
    // The sign of what is not a number is nobody's promise.
    put(
        table,
        "signbit",
        c ->
            c.set(
                "self",
                c.sketch.input(c.sketch.dtype(), c.sketch.shape(1), Fill.of(Fill.Kind.SORTED))));
    put(
        table,
        "copysign.Tensor",
        c -> {
          var type = c.main("self").tensor();
          c.set(
              "other",
              c.sketch.input(c.sketch.dtype(), type.sizes().toArray(), Fill.of(Fill.Kind.SORTED)));
        });
    put(
        table,
        "histc",
        c -> {
          c.floats("self", 0, 2);
          c.set("bins", 1 + c.sketch.random.nextInt(8));
          c.set("min", new Arg.Int(-2));
          c.set("max", new Arg.Int(3));
        });
    put(
        table,
        "_assert_async",
        c -> c.set("self", c.sketch.input(DType.I64, new long[0], Fill.of(Fill.Kind.POSITIVE))));
    put(table, "_assert_scalar", c -> c.set("self", 1));
    put(
        table,
        "_assert_tensor_metadata",
        c -> {
          var type = c.main("a").tensor();
          c.set("size", Call.list(type.sizes()));
          c.set("stride", Arg.None.NONE);
          c.set("dtype", new Arg.Dtype(type.dtype()));
        });
    put(
        table,
        "randint randint_like",
        c -> {
          c.set("low", 0);
          c.set("high", 9);
        });
    put(
        table,
        "inductor_randint",
        c -> {
          c.set("low", 0);
          c.set("high", 9);
          c.set("seed", c.sketch.tensor(DType.I64));
        });
    put(
        table,
        "inductor_random",
        c -> {
          c.set("seed", c.sketch.tensor(DType.I64));
          c.set("mode", new Arg.Str(c.sketch.pick("rand", "randn")));
        });
    put(
        table,
        "randperm inductor_seeds",
        c -> {
          c.set("n", c.sketch.random.nextInt(9));
          c.set("count", c.sketch.random.nextInt(1, 5));
        });
    put(
        table,
        "inductor_lookup_seed",
        c -> {
          c.set("seeds", c.sketch.tensor(DType.I64, 3));
          c.set("index", c.sketch.random.nextInt(3));
        });
    put(
        table,
        "bernoulli multinomial",
        c -> {
          c.set(
              "self",
              c.sketch.input(
                  DType.F32,
                  new long[] {3, 1 + c.sketch.random.nextInt(5)},
                  Fill.of(Fill.Kind.UNIT)));
          c.set("num_samples", 1);
        });
    put(table, "bernoulli.p", c -> c.set("p", new Arg.Float(0.3)));
    put(table, "dropout native_dropout", c -> c.set("p", new Arg.Float(0.3)));
    put(
        table,
        "native_dropout_backward",
        c -> {
          var grad = c.floats("grad_output", 0, 3);
          c.set("mask", c.sketch.tensor(DType.BOOL, grad.tensor().sizes()));
        });
    put(
        table,
        "fill.Tensor masked_fill.Tensor index_fill.int_Tensor",
        c -> {
          var self = c.main("self");
          if (c.has("dim")) {
            RecipesOfIndices.vector(c, self.tensor());
          }
          c.set("value", c.sketch.tensor(self.tensor().dtype()));
        });
    put(
        table,
        "log_sigmoid_backward",
        c -> {
          var grad = c.floats("grad_output", 0, 3);
          c.set("self", c.sketch.like(grad));
          c.set("buffer", c.sketch.tensor(grad.tensor().dtype(), 0));
        });
  }

  static boolean isTensor(Call c, String param) {
    return c.has(param)
        && c.def.schema().params().get(c.def.schema().indexOf(param)).type().holdsTensors();
  }

  // ---- shapes

  /** The same number of elements in other dimensions. */
  static ImmutableLongArray regrouped(Sketch sketch, ImmutableLongArray sizes) {
    var result = new ArrayList<Long>();
    for (long size : sizes.asList()) {
      if (!result.isEmpty() && sketch.chance(40)) {
        result.add(result.removeLast() * size);
      } else if (size > 1 && size % 2 == 0 && sketch.chance(40)) {
        result.add(2L);
        result.add(size / 2);
      } else if (size == 1 && sketch.chance(40)) {
        continue;
      } else {
        result.add(size);
      }
      if (sketch.chance(10)) {
        result.add(1L);
      }
    }
    return ImmutableLongArray.copyOf(result);
  }

  static long[] first(int[] order, int count) {
    return Arrays.stream(order).limit(count).mapToLong(i -> i).toArray();
  }

  static long[] prepend(long[] sizes, long size) {
    var result = new long[sizes.length + 1];
    result[0] = size;
    System.arraycopy(sizes, 0, result, 1, sizes.length);
    return result;
  }

  static ImmutableLongArray without(ImmutableLongArray sizes, int dim) {
    var result = ImmutableLongArray.builder();
    for (int i = 0; i < sizes.length(); i++) {
      if (i != dim) {
        result.add(sizes.get(i));
      }
    }
    return result.build();
  }

  static ImmutableLongArray with(ImmutableLongArray sizes, int dim, long size) {
    var result = sizes.toArray();
    result[dim] = size;
    return ImmutableLongArray.copyOf(result);
  }
}
