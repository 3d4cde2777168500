package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Convolutions, pools, norms of batches, resized and padded images, and steps of optimizers. */
final class RecipesOfImages {
  private RecipesOfImages() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(table, "convolution convolution_backward", RecipesOfImages::convolution);
    Recipes.put(
        table,
        "im2col",
        c -> {
          image(c, "self", c.sketch.dtype());
          window(c, 1);
        });
    Recipes.put(
        table,
        "col2im",
        c -> {
          c.set("self", c.sketch.tensor(c.sketch.floatType(), 2, 8, 6));
          c.setAll("output_size", 3, 4);
          window(c, 0);
        });
    Recipes.put(
        table,
        "max_pool2d_with_indices avg_pool2d _low_memory_max_pool_with_offsets",
        c -> {
          image(c, "self", c.sketch.floatType());
          window(c, c.sketch.random.nextInt(2));
          c.set("divisor_override", Arg.None.NONE);
        });
    Recipes.put(
        table,
        "max_pool2d_with_indices_backward avg_pool2d_backward",
        c -> {
          var type = image(c, "self", c.sketch.floatType()).tensor();
          window(c, 0);
          long rows = type.size(2) - 1;
          long columns = type.size(3) - 1;
          c.set(
              "grad_output",
              c.sketch.tensor(type.dtype(), type.size(0), type.size(1), rows, columns));
          c.set(
              "indices",
              c.sketch.input(
                  DType.I64,
                  new long[] {type.size(0), type.size(1), rows, columns},
                  Fill.index(type.size(2) * type.size(3))));
          c.set("divisor_override", Arg.None.NONE);
        });
    Recipes.put(
        table,
        "_low_memory_max_pool_offsets_to_indices",
        c -> {
          c.set("self", c.sketch.input(DType.I8, new long[] {1, 2, 3, 2}, Fill.index(4)));
          window(c, 0);
          c.setAll("input_size", 4, 3);
        });
    Recipes.put(
        table,
        "_adaptive_avg_pool2d",
        c -> {
          image(c, "self", c.sketch.floatType());
          c.setAll("output_size", 1 + c.sketch.random.nextInt(5), 2);
        });
    Recipes.put(
        table,
        "_adaptive_avg_pool2d_backward",
        c -> {
          var type = image(c, "self", c.sketch.floatType()).tensor();
          c.set("grad_output", c.sketch.tensor(type.dtype(), type.size(0), type.size(1), 3, 2));
        });
    Recipes.put(
        table,
        "_native_batch_norm_legit_functional _batch_norm_with_update_functional"
            + " _native_batch_norm_legit_no_training _native_batch_norm_legit"
            + " native_batch_norm_backward batch_norm_backward",
        RecipesOfImages::batchNorm);
    Recipes.put(
        table,
        "upsample_nearest2d upsample_bilinear2d",
        c -> {
          image(c, c.has("self") ? "self" : "input", c.sketch.floatType());
          boolean bySize = !c.has("scale_factors") || c.sketch.chance(50);
          c.set("output_size", bySize ? Call.list(5, 3) : Arg.None.NONE);
          c.set("scale_factors", bySize ? Arg.None.NONE : numbers(1.5, 2));
          noScales(c);
        });
    Recipes.put(
        table,
        "upsample_nearest2d_backward upsample_bilinear2d_backward",
        c -> {
          c.set("grad_output", c.sketch.tensor(c.sketch.floatType(), 2, 3, 5, 3));
          c.setAll("output_size", 5, 3);
          c.setAll("input_size", 2, 3, 3, 4);
          noScales(c);
        });
    for (int dims = 1; dims <= 3; dims++) {
      int padded = dims;
      Recipes.put(
          table,
          "reflection_padDd replication_padDd reflection_padDd_backward replication_padDd_backward"
              .replace("D", Integer.toString(dims)),
          c -> padded(c, padded));
    }
    Recipes.put(table, "_fused_adam _fused_adamw _fused_sgd", RecipesOfImages::optimizer);
    Recipes.put(
        table,
        "bincount",
        c -> {
          c.set("self", c.sketch.input(DType.I64, new long[] {6}, Fill.index(4)));
          c.set("weights", c.sketch.chance(50) ? Arg.None.NONE : ref(c, DType.F32, 6));
          c.set("minlength", 4 + c.sketch.random.nextInt(3));
        });
  }

  private static Arg ref(Call c, DType dtype, long... sizes) {
    return new Arg.Ref(c.sketch.tensor(dtype, sizes));
  }

  private static Arg numbers(double... numbers) {
    var items = ImmutableList.<Arg>builder();
    for (double number : numbers) {
      items.add(new Arg.Float(number));
    }
    return new Arg.Seq(items.build());
  }

  private static Value image(Call c, String param, DType dtype) {
    return c.set(
        param,
        c.sketch.tensor(
            dtype, 1 + c.sketch.random.nextInt(2), 3, 2 + c.sketch.random.nextInt(4), 4));
  }

  private static void window(Call c, long padding) {
    c.setAll("kernel_size", 2, 2);
    c.setAll("stride", 1, 1);
    c.setAll("padding", padding, padding);
    c.setAll("dilation", 1, 1);
    c.set("ceil_mode", new Arg.Bool(false));
  }

  private static void noScales(Call c) {
    c.set("scales_h", Arg.None.NONE);
    c.set("scales_w", Arg.None.NONE);
  }

  private static void convolution(Call c) {
    boolean transposed = c.sketch.chance(40);
    var type = image(c, "input", c.sketch.floatType()).tensor();
    long size = transposed ? 1 : -1;
    c.set("weight", c.sketch.tensor(type.dtype(), 3, 3, 2, 2));
    c.set("bias", c.sketch.chance(50) ? Arg.None.NONE : ref(c, type.dtype(), 3));
    c.set("bias_sizes", Call.list(3));
    c.setAll("stride", 1, 1);
    c.setAll("padding", 0, 0);
    c.setAll("dilation", 1, 1);
    c.setAll("output_padding", 0, 0);
    c.set("transposed", new Arg.Bool(transposed));
    c.set("groups", 1);
    c.set(
        "grad_output",
        c.sketch.tensor(type.dtype(), type.size(0), 3, type.size(2) + size, type.size(3) + size));
  }

  private static void batchNorm(Call c) {
    var input = image(c, "input", c.sketch.floatType());
    c.set("grad_out", c.sketch.like(input));
    var type = input.tensor();
    var wide = type.dtype().bytes() < 4 ? DType.F32 : type.dtype();
    for (var name :
        List.of(
            "weight",
            "bias",
            "running_mean",
            "running_var",
            "save_mean",
            "save_invstd",
            "save_var")) {
      if (c.has(name)) {
        c.set(name, c.sketch.tensor(wide, type.size(1)));
      }
    }
    c.set("reserve", ref(c, DType.U8, 0));
  }

  private static void padded(Call c, int dims) {
    var sizes = new long[dims + 2];
    var wide = new long[dims + 2];
    var padding = new long[2 * dims];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = 2 + c.sketch.random.nextInt(2);
      wide[i] = sizes[i];
    }
    for (int i = 0; i < padding.length; i++) {
      padding[i] = c.sketch.random.nextInt(-1, 2);
      wide[sizes.length - 1 - i / 2] += padding[i];
    }
    TensorType type = c.set("self", c.sketch.tensor(c.sketch.floatType(), sizes)).tensor();
    c.setAll("padding", padding);
    for (long size : wide) {
      if (size < 1) {
        return;
      }
    }
    c.set("grad_output", c.sketch.tensor(type.dtype(), wide));
  }

  private static void optimizer(Call c) {
    var first = c.floats("", 0, 2);
    var self = new ArrayList<>(List.of(first, c.sketch.tensor(first.tensor().dtype(), 3)));
    c.set("self", Call.refs(self));
    boolean largest = c.sketch.chance(50);
    c.set("amsgrad", new Arg.Bool(largest));
    c.set("momentum", new Arg.Float(0.9));
    for (var name : List.of("grads", "exp_avgs", "exp_avg_sqs", "momentum_buffer_list")) {
      if (c.has(name)) {
        c.set(name, Call.refs(self.stream().map(c.sketch::like).toList()));
      }
    }
    c.set(
        "max_exp_avg_sqs",
        largest
            ? Call.refs(self.stream().map(c.sketch::like).toList())
            : new Arg.Seq(ImmutableList.of()));
    if (c.has("state_steps")) {
      c.set("state_steps", Call.refs(self.stream().map(_ -> c.sketch.tensor(DType.F32)).toList()));
    }
    c.set(
        "lr", c.def.name().overload().equals("tensor_lr") ? ref(c, DType.F32) : new Arg.Float(0.1));
    c.set("grad_scale", c.sketch.chance(50) ? Arg.None.NONE : ref(c, DType.F32));
    c.set("found_inf", c.sketch.chance(70) ? Arg.None.NONE : ref(c, DType.F32));
  }
}
