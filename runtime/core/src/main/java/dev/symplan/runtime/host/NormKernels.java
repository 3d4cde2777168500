package dev.symplan.runtime.host;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Group and batch norms (Wu, He 2018; Ioffe, Szegedy 2015), and the gradients of all norms, as
 * expressions of rows. Computed in f64; each result is rounded once.
 */
final class NormKernels {

  /**
   * How an op sees its tensors.
   *
   * @param sizes of the input
   * @param row the dimensions that statistics are of
   * @param shared the dimensions along which weights are the same
   */
  private record Shape(long[] sizes, boolean[] row, boolean[] shared) {

    static Shape layers(HostCall call) {
      long width = product(call.integers("normalized_shape").asList());
      long rows = product(call.tensor("input").type().sizes().asList()) / Math.max(1, width);
      return new Shape(
          new long[] {width == 0 ? call.tensor("rstd").type().numel() : rows, width},
          new boolean[] {false, true},
          new boolean[] {true, false});
    }

    static Shape groups(HostCall call, String groups) {
      var sizes = call.tensor("input").type().sizes();
      long count = call.integer(groups);
      return new Shape(
          new long[] {
            sizes.get(0),
            count,
            sizes.get(1) / count,
            product(sizes.subArray(2, sizes.length()).asList())
          },
          new boolean[] {false, false, true, true},
          new boolean[] {true, false, false, true});
    }

    static Shape batch(HostCall call) {
      var sizes = call.tensor("input").type().sizes();
      var outer = new boolean[] {true, false, true};
      return new Shape(
          new long[] {
            sizes.get(0), sizes.get(1), product(sizes.subArray(2, sizes.length()).asList())
          },
          outer,
          outer);
    }

    private static long product(List<Long> sizes) {
      return sizes.stream().reduce(1L, (a, b) -> a * b);
    }

    private long[] without(boolean[] dims) {
      var kept = sizes.clone();
      for (int dim = 0; dim < kept.length; dim++) {
        kept[dim] = dims[dim] ? 1 : kept[dim];
      }
      return kept;
    }

    long[] statistics() {
      return without(row);
    }

    long[] weights() {
      return without(shared);
    }
  }

  private static final String NORMAL = "(input - mean) * rstd";
  private static final String FORWARD =
      "affine((input - mean(input)) * rstd(input)); mean(input); rstd(input)";

  private NormKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::native_group_norm", call -> forward(call, Shape.groups(call, "group"), FORWARD))
        .put("aten::group_norm", call -> forward(call, Shape.groups(call, "num_groups"), FORWARD))
        .put(
            "aten::_native_batch_norm_legit_functional",
            call -> batch(call, call.bool("training"), 3))
        .put("aten::_batch_norm_with_update_functional", call -> batch(call, true, 4))
        .put("aten::_native_batch_norm_legit.no_stats", call -> batch(call, true, -1))
        .put("aten::_native_batch_norm_legit_no_training", call -> batch(call, false, -1))
        .put(
            "aten::native_layer_norm_backward",
            call -> backward(call, Shape.layers(call), NORMAL, "rstd"))
        .put(
            "aten::_fused_rms_norm_backward",
            call -> backward(call, Shape.layers(call), "input * rstd", "rstd"))
        .put(
            "aten::native_group_norm_backward",
            call -> backward(call, Shape.groups(call, "group"), NORMAL, "rstd"))
        .put(
            "aten::native_batch_norm_backward",
            call -> batchBackward(call, call.bool("train"), "save_invstd"))
        .put(
            "aten::batch_norm_backward",
            call -> batchBackward(call, call.bool("update"), "save_var"))
        .buildOrThrow();
  }

  private static void forward(HostCall call, Shape shape, String exprs) {
    compute(call, exprs, operands(call, shape), shape, false, 0);
  }

  private static void batch(HostCall call, boolean training, int running) {
    var shape = Shape.batch(call);
    forward(
        call,
        shape,
        training
            ? FORWARD
            : "affine((input - running_mean) * running_rstd()); running_mean; running_rstd()");
    if (running >= 0) {
      compute(
          call,
          training
              ? "momentum * mean(input) + (1 - momentum) * running_mean;"
                  + " momentum * (spread(input) / (count() - 1)) + (1 - momentum) * running_var"
              : "running_mean; running_var",
          operands(call, shape),
          shape,
          false,
          running);
    }
  }

  private static void batchBackward(HostCall call, boolean training, String saved) {
    var shape = Shape.batch(call);
    if (training) {
      backward(call, shape, "(input - save_mean) * " + saved, saved);
    } else {
      var normal = "(input - running_mean) * running_rstd()";
      compute(call, "weighted(grad_out) * running_rstd()", operands(call, shape), shape, false, 0);
      weightGradients(call, shape, normal);
    }
  }

  /**
   * Gradients of what statistics of its own rows normalized.
   *
   * @param normal what was scaled by weights
   * @param rstd the operand that it was scaled by before
   */
  private static void backward(HostCall call, Shape shape, String normal, String rstd) {
    boolean centred = normal.contains("-");
    compute(
        call,
        "%s * (weighted(grad_out) - (%s%s * sum(weighted(grad_out) * %s)) / count())"
            .formatted(rstd, centred ? "sum(weighted(grad_out)) + " : "", normal, normal),
        operands(call, shape),
        shape,
        false,
        0);
    weightGradients(call, shape, normal);
  }

  private static void weightGradients(HostCall call, Shape shape, String normal) {
    var exprs = "sum(grad_out * (%s)); sum(grad_out)".formatted(normal);
    compute(call, exprs, operands(call, shape), shape, true, 1);
  }

  /** {@return the tensors of a call by their parameters, as an op sees them} */
  private static Map<String, HostTensor> operands(HostCall call, Shape shape) {
    var operands = new HashMap<String, HostTensor>();
    for (var param : call.schema().params()) {
      if (call.value(param.name()) instanceof HostCall.Value.Tensor(var tensor)) {
        operands.put(
            param.name(),
            switch (param.name()) {
              case "input", "grad_out" -> Views.reshaped(tensor, shape.sizes());
              case "weight", "bias" -> Views.reshaped(tensor, shape.weights());
              case "reserve" -> tensor;
              default -> Views.reshaped(tensor, shape.statistics());
            });
      }
    }
    return operands;
  }

  /**
   * Computes some of the results, of those that there are.
   *
   * @param shared whether rows are of what shares weights, rather than statistics
   * @param first the number of the first one
   */
  private static void compute(
      HostCall call,
      String exprs,
      Map<String, HostTensor> operands,
      Shape shape,
      boolean shared,
      int first) {
    var all = Splitter.on(';').splitToList(exprs);
    var wanted = new ArrayList<String>();
    var results = new ArrayList<HostTensor>();
    var seen = new ArrayList<HostTensor>();
    for (int i = 0; i < all.size(); i++) {
      int index = first + i;
      if (index < call.resultCount()
          && call.hasResult(index)
          && call.result(index).type().numel() > 0) {
        var sizes = index == 0 ? shape.sizes() : shared ? shape.weights() : shape.statistics();
        wanted.add(all.get(i));
        results.add(call.result(index));
        seen.add(HostTensor.allocate(TensorType.contiguous(call.result(index).dtype(), sizes)));
      }
    }
    if (wanted.isEmpty()) {
      return;
    }
    RowsKernel.compute(
        Optional.of(call),
        String.join(";", wanted),
        operands,
        TensorType.contiguous(DType.F64, shape.sizes()),
        shared ? shape.shared() : shape.row(),
        seen.toArray(HostTensor[]::new));
    for (int i = 0; i < seen.size(); i++) {
      results.get(i).copyFrom(seen.get(i).as(results.get(i).type().contiguous()));
    }
  }
}
