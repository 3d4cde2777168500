package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.SchemaType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/** Windows over images, batch norms, and ops over lists of tensors. */
final class RecipesOfImages {
  private RecipesOfImages() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(
        table,
        "avg_pool2d max_pool2d_with_indices _low_memory_max_pool_with_offsets",
        c -> {
          c.set("self", image(c, 4));
          window(c);
        });
    Recipes.put(
        table,
        "avg_pool2d_backward",
        c -> forward(c, "avg_pool2d", image(c, 4)).ifPresent(r -> gradient(c, r.getFirst())));
    Recipes.put(
        table,
        "max_pool2d_with_indices_backward",
        c ->
            forward(c, "max_pool2d_with_indices", image(c, 4))
                .ifPresent(
                    r -> {
                      gradient(c, r.getFirst());
                      c.set("indices", r.get(1));
                    }));
    Recipes.put(
        table,
        "_low_memory_max_pool_offsets_to_indices",
        c -> {
          c.setAll("input_size", 5, 5);
          c.setAll("kernel_size", 2, 2);
          c.setAll("stride", 2, 2);
          c.setAll("padding", 0, 0);
          c.setAll("dilation", 1, 1);
          c.set("self", c.sketch.input(DType.I8, new long[] {1, 2, 2, 2}, Fill.index(4)));
        });
    Recipes.put(
        table,
        "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward",
        c -> {
          var self = c.set("self", image(c, 4));
          c.setAll("output_size", 2, 3);
          if (c.has("grad_output")) {
            var type = self.tensor();
            c.set("grad_output", c.sketch.tensor(type.dtype(), type.size(0), type.size(1), 2, 3));
          }
        });
    Recipes.put(
        table,
        "convolution convolution_backward",
        c -> {
          var type = c.set("input", image(c, 4)).tensor();
          long out = 1 + c.sketch.random.nextInt(3);
          c.set("weight", c.sketch.tensor(type.dtype(), out, type.size(1), 3, 3));
          optional(c, "bias", type.dtype(), out);
          c.set("bias_sizes", c.sketch.chance(50) ? Arg.None.NONE : Call.list(out));
          for (var name : List.of("stride", "padding", "dilation")) {
            c.setAll(name, 1, 1);
          }
          c.setAll("output_padding", 0, 0);
          c.set("transposed", new Arg.Bool(false));
          c.set("groups", 1);
          if (c.has("grad_output")) {
            c.set(
                "grad_output",
                c.sketch.tensor(type.dtype(), type.size(0), out, type.size(2), type.size(3)));
          }
        });
    Recipes.put(
        table,
        "_batch_norm_with_update_functional _native_batch_norm_legit"
            + " _native_batch_norm_legit_functional _native_batch_norm_legit_no_training"
            + " native_batch_norm_backward batch_norm_backward",
        RecipesOfImages::batchNorm);
    for (int dims = 1; dims <= 3; dims++) {
      int count = dims;
      for (var kind : List.of("reflection_pad", "replication_pad")) {
        var name = kind + dims + "d";
        Recipes.put(table, name, c -> pad(c, c.set("self", image(c, count + 2))));
        Recipes.put(
            table,
            name + "_backward",
            c -> forward(c, name, image(c, count + 2)).ifPresent(r -> gradient(c, r.getFirst())));
      }
    }
    Recipes.put(
        table,
        "upsample_bilinear2d upsample_nearest2d upsample_bilinear2d_backward"
            + " upsample_nearest2d_backward",
        c -> {
          var type = image(c, 4).tensor();
          long height = 2 * type.size(2);
          long width = 2 * type.size(3);
          c.set("self", c.sketch.tensor(type.dtype(), type.sizes()));
          c.set("input", c.sketch.tensor(type.dtype(), type.sizes()));
          c.setAll("output_size", height, width);
          c.set("input_size", Call.list(type.sizes()));
          for (var name : List.of("scales_h", "scales_w", "scale_factors")) {
            c.set(name, Arg.None.NONE);
          }
          if (c.has("grad_output")) {
            c.set(
                "grad_output",
                c.sketch.tensor(type.dtype(), type.size(0), type.size(1), height, width));
          }
        });
    Recipes.put(
        table,
        "im2col col2im",
        c -> {
          var dtype = c.sketch.floatType();
          c.set(
              "self",
              c.has("output_size")
                  ? c.sketch.tensor(dtype, 1, 8, 9)
                  : c.sketch.tensor(dtype, 1, 2, 4, 4));
          c.setAll("output_size", 4, 4);
          c.setAll("kernel_size", 2, 2);
          c.setAll("stride", 1, 1);
          c.setAll("padding", 0, 0);
          c.setAll("dilation", 1, 1);
        });
    Recipes.put(
        table,
        "glu glu_backward",
        c -> {
          long half = 1 + c.sketch.random.nextInt(3);
          var self = c.set("self", c.sketch.tensor(c.sketch.floatType(), 3, 2 * half));
          c.set("dim", 1);
          if (c.has("grad_output")) {
            c.set("grad_output", c.sketch.tensor(self.tensor().dtype(), 3, half));
          }
        });
    Recipes.put(
        table,
        "masked_scatter_backward",
        c -> {
          var grad = c.main("grad_output");
          c.set("mask", c.sketch.tensor(DType.BOOL, grad.tensor().sizes()));
          c.set("sizes", Call.list(grad.tensor().sizes()));
        });
    Recipes.put(
        table,
        "_unsafe_masked_index _unsafe_masked_index_put_accumulate",
        c -> {
          var type = c.mainOfRank("self", 1, 1).tensor();
          long count = type.size(0) == 0 ? 0 : 3;
          c.set("mask", c.sketch.tensor(DType.BOOL, count));
          c.set(
              "indices", new Arg.Seq(ImmutableList.of(new Arg.Ref(c.index(type.size(0), count)))));
          c.set("fill", new Arg.Int(1));
          c.set("values", c.sketch.tensor(type.dtype(), count));
        });
  }

  private static Value image(Call c, int rank) {
    var sizes = new long[rank];
    Arrays.setAll(sizes, i -> i == 0 ? 1 : i == 1 ? 2 : 3 + c.sketch.random.nextInt(2));
    return c.sketch.tensor(c.sketch.floatType(), sizes);
  }

  private static void window(Call c) {
    c.setAll("kernel_size", 2, 2);
    c.setAll("stride", 2, 2);
    long padding = c.sketch.random.nextInt(2);
    c.setAll("padding", padding, padding);
    c.setAll("dilation", 1, 1);
    c.set("ceil_mode", new Arg.Bool(false));
    c.set("divisor_override", Arg.None.NONE);
  }

  private static void pad(Call c, Value of) {
    var pads = new long[2 * (of.tensor().rank() - 2)];
    Arrays.setAll(pads, i -> c.sketch.random.nextInt(3));
    c.setAll("padding", pads);
  }

  /** Runs the op that this is the gradient of, with the same arguments. */
  private static Optional<ImmutableList<Value>> forward(Call c, String name, Value self) {
    var forward = new Call(c.sketch, Sketch.op("aten::" + name));
    for (var call : List.of(forward, c)) {
      call.set("self", self);
    }
    if (name.contains("pool")) {
      window(forward);
    } else {
      pad(forward, self);
    }
    for (var param :
        List.of("kernel_size", "stride", "padding", "dilation", "ceil_mode", "divisor_override")) {
      c.set(param, forward.arg(param));
    }
    c.set("count_include_pad", new Arg.Bool(true));
    forward.set("count_include_pad", new Arg.Bool(true));
    return c.sketch.apply(forward.def, forward.finish(), true);
  }

  private static void gradient(Call c, Value result) {
    c.set("grad_output", c.sketch.like(result));
  }

  private static void optional(Call c, String name, DType dtype, long... sizes) {
    c.set(name, c.sketch.chance(60) ? new Arg.Ref(c.sketch.tensor(dtype, sizes)) : Arg.None.NONE);
  }

  private static void batchNorm(Call c) {
    var dtype = c.sketch.pick(DType.F32, DType.F64);
    var input = c.set("input", c.sketch.tensor(dtype, 2, 3, 4));
    boolean backward = c.has("grad_out");
    for (var name :
        List.of(
            "weight",
            "bias",
            "running_mean",
            "running_var",
            "save_mean",
            "save_invstd",
            "save_var")) {
      c.set(name, c.sketch.tensor(dtype, 3));
    }
    c.set("train", new Arg.Bool(c.sketch.chance(50)));
    c.set("training", new Arg.Bool(true));
    c.set("momentum", new Arg.Float(0.1));
    if (backward) {
      c.set("grad_out", c.sketch.like(input));
      if (c.has("reserve")) {
        c.set("reserve", c.sketch.tensor(DType.U8, 0));
      }
    }
  }

  /** Lists of as many tensors as each other, each like those at its place in the others. */
  static void lists(Call c) {
    int count = 1 + c.sketch.random.nextInt(2);
    var dtype = c.sketch.pick(DType.F32, DType.F64);
    var shapes = new ArrayList<long[]>();
    for (int i = 0; i < count; i++) {
      shapes.add(c.sketch.shape(1));
    }
    boolean fused = c.def.name().name().startsWith("_fused");
    for (var param : c.def.schema().params()) {
      if (param.type() instanceof SchemaType.ListOf list) {
        var items = ImmutableList.<Arg>builder();
        boolean none = param.name().startsWith("max_exp") || param.name().startsWith("momentum_b");
        for (int i = 0; i < count && !none; i++) {
          items.add(
              list.element() == SchemaType.Base.TENSOR
                  ? new Arg.Ref(item(c, param.name(), param.alias().write(), dtype, shapes.get(i)))
                  : new Arg.Float(0.5));
        }
        c.set(param.name(), new Arg.Seq(items.build()));
      } else if (param.type() == SchemaType.Base.TENSOR) {
        c.set(param.name(), c.sketch.tensor(dtype));
      } else if (fused && param.type() == SchemaType.Base.BOOL) {
        c.set(param.name(), new Arg.Bool(false));
      } else if (fused && param.name().equals("momentum")) {
        c.set(param.name(), new Arg.Float(0));
      } else if (fused && param.type() instanceof SchemaType.OptionalOf) {
        c.set(param.name(), Arg.None.NONE);
      }
    }
  }

  private static Value item(Call c, String param, boolean writes, DType dtype, long[] shape) {
    if (param.equals("state_steps")) {
      return c.sketch.input(TensorType.contiguous(DType.F32), Fill.of(Fill.Kind.POSITIVE));
    }
    var value = c.sketch.tensor(dtype, shape);
    return writes ? c.sketch.must("aten::clone", new Arg.Ref(value), Arg.None.NONE) : value;
  }
}
