package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
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
    if (RecipesOfComplexNumbers.suits(def) && sketch.chance(10)) {
      RecipesOfComplexNumbers.choose(call);
      return call.finish();
    }
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
    RecipesOfViews.add(table);
    shapes(table);
    RecipesOfProducts.add(table);
    RecipesOfIndices.add(table);
    RecipesOfNorms.add(table);
    RecipesOfImages.add(table);
    RecipesOfComplexNumbers.add(table);
    numbers(table);
    return table.buildOrThrow();
  }

  static void put(
      ImmutableMap.Builder<String, Consumer<Call>> table, String names, Consumer<Call> recipe) {
    for (var name : names.split(" ")) {
      table.put(name, recipe);
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
          var strides = new long[type.rank()];
          long next = 1;
          for (int dim : c.sketch.order(type.rank())) {
            strides[dim] = next;
            next *= Math.max(1, type.size(dim));
          }
          c.setAll("stride", strides);
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

  // Shapes.

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
