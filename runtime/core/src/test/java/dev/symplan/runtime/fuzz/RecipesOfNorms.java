package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** Norms, softmaxes and losses, with their gradients. */
final class RecipesOfNorms {
  private RecipesOfNorms() {}

  static void add(ImmutableMap.Builder<String, Consumer<Call>> table) {
    Recipes.put(
        table,
        "native_layer_norm layer_norm rms_norm _fused_rms_norm",
        c -> normalized(c, "input"));
    Recipes.put(
        table,
        "native_layer_norm_backward _fused_rms_norm_backward",
        c -> {
          normalized(c, "input");
          var input = ((Arg.Ref) c.arg("input")).value();
          var type = input.tensor();
          c.set("grad_out", c.sketch.like(input));
          var statistics = type.sizes().toArray();
          int inner = ((Arg.Seq) c.arg("normalized_shape")).items().size();
          Arrays.fill(statistics, statistics.length - inner, statistics.length, 1);
          var dtype = type.dtype().bytes() < 4 ? DType.F32 : type.dtype();
          for (var name : List.of("mean", "rstd")) {
            if (c.has(name)) {
              c.set(name, c.sketch.tensor(dtype, statistics));
            }
          }
        });
    Recipes.put(
        table, "native_group_norm native_group_norm_backward group_norm", RecipesOfNorms::grouped);
    Recipes.put(
        table,
        "_softmax _log_softmax softmax log_softmax _safe_softmax prepare_softmax_online",
        c -> {
          var self = c.floats(c.has("self") ? "self" : "a", 0, 3);
          c.setDim("dim", self.tensor());
          boolean half = self.tensor().dtype().bytes() == 2;
          c.set("half_to_float", new Arg.Bool(half && c.sketch.chance(50)));
          c.set("dtype", c.sketch.chance(50) ? Arg.None.NONE : new Arg.Dtype(c.sketch.floatType()));
        });
    Recipes.put(
        table,
        "_softmax_backward_data _log_softmax_backward_data",
        c -> {
          var grad = c.floats("grad_output", 0, 3);
          c.set("output", c.sketch.like(grad));
          c.setDim("dim", grad.tensor());
          c.set("input_dtype", new Arg.Dtype(grad.tensor().dtype()));
        });
    Recipes.put(
        table,
        "mse_loss",
        c -> {
          var self = c.floats("self", 0, 3);
          c.set("target", c.sketch.like(self));
          c.set("reduction", c.sketch.random.nextInt(3));
        });
    Recipes.put(
        table,
        "mse_loss_backward",
        c -> {
          var self = c.floats("self", 0, 3);
          int reduction = c.sketch.random.nextInt(3);
          c.set("target", c.sketch.like(self));
          c.set("reduction", reduction);
          c.set(
              "grad_output",
              reduction == 0 ? c.sketch.like(self) : c.sketch.tensor(self.tensor().dtype()));
        });
    Recipes.put(
        table, "nll_loss_forward nll_loss_backward cross_entropy_loss", RecipesOfNorms::likelihood);
  }

  private static void normalized(Call c, String param) {
    var type = c.floats(param, 1, 3).tensor();
    int inner = 1 + c.sketch.random.nextInt(type.rank());
    var sizes = type.sizes().subArray(type.rank() - inner, type.rank());
    c.set("normalized_shape", Call.list(sizes));
    parameter(c, "weight", type.dtype(), sizes);
    parameter(c, "bias", type.dtype(), sizes);
  }

  private static void parameter(Call c, String name, DType dtype, ImmutableLongArray sizes) {
    if (c.has(name)) {
      c.set(name, c.sketch.chance(60) ? new Arg.Ref(c.sketch.tensor(dtype, sizes)) : Arg.None.NONE);
    }
  }

  private static void grouped(Call c) {
    long batch = 1 + c.sketch.random.nextInt(2);
    long groups = 1 + c.sketch.random.nextInt(2);
    long channels = groups * (1 + c.sketch.random.nextInt(3));
    long area = 1 + c.sketch.random.nextInt(4);
    var input = c.sketch.tensor(c.sketch.floatType(), batch, channels, area);
    var type = input.tensor();
    c.set("input", input);
    c.set("N", batch);
    c.set("C", channels);
    c.set("HxW", area);
    c.set("group", groups);
    c.set("num_groups", groups);
    parameter(c, "weight", type.dtype(), ImmutableLongArray.of(channels));
    parameter(c, "bias", type.dtype(), ImmutableLongArray.of(channels));
    for (var name : List.of("mean", "rstd")) {
      if (c.has(name)) {
        c.set(name, c.sketch.tensor(type.dtype(), batch, groups));
      }
    }
    if (c.has("grad_out")) {
      c.set("grad_out", c.sketch.like(input));
    }
  }

  private static void likelihood(Call c) {
    long batch = 1 + c.sketch.random.nextInt(4);
    long classes = 1 + c.sketch.random.nextInt(5);
    var dtype = c.sketch.floatType();
    int reduction = c.sketch.random.nextInt(3);
    c.set("self", c.sketch.tensor(dtype, batch, classes));
    c.set("target", c.sketch.input(TensorType.contiguous(DType.I64, batch), Fill.index(classes)));
    parameter(c, "weight", dtype, ImmutableLongArray.of(classes));
    c.set("reduction", reduction);
    c.set("ignore_index", -100);
    c.set("label_smoothing", new Arg.Float(c.sketch.pick(0.0, 0.1)));
    if (c.has("grad_output")) {
      c.set("grad_output", reduction == 0 ? c.sketch.tensor(dtype, batch) : c.sketch.tensor(dtype));
      c.set("total_weight", c.sketch.tensor(dtype));
    }
  }
}
