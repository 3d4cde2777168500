package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Optional;

/** Losses and their gradients; {@code reduction} is 0 for none, 1 for the mean, 2 for the sum. */
final class LossKernels {
  private static final int MEAN = 1;
  private static final int NONE = 0;

  private LossKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::mse_loss",
        LossKernels::squaredError,
        "aten::nll_loss_forward",
        call -> {
          var loss = new Likelihood(call, call.tensor("self"));
          loss.store(call.result(0));
          if (call.hasResult(1)) {
            call.result(1).set(call.integer("reduction") == NONE ? 0 : loss.totalWeight);
          }
        },
        "aten::nll_loss_backward",
        LossKernels::likelihoodBackward,
        "aten::cross_entropy_loss",
        LossKernels::crossEntropy);
  }

  private static void squaredError(HostCall call) {
    var square = Pointwise.binary((a, b) -> (a - b) * (a - b));
    long reduction = call.integer("reduction");
    if (reduction == NONE) {
      new ElementwiseKernel(Expressions.parse("(self - target) * (self - target)").getFirst())
          .run(call);
      return;
    }
    var self = call.tensor("self");
    var target = call.tensor("target");
    var sizes = Broadcasts.sizes(self, target);
    var squares = HostTensor.allocate(TensorType.contiguous(DType.F64, sizes));
    Pointwise.apply(squares, square, self, target);
    var all = new boolean[Math.max(1, squares.type().rank())];
    Arrays.fill(all, true);
    RowsKernel.compute(
        reduction == MEAN ? "mean(x)" : "sum(x)",
        ImmutableMap.of("x", squares),
        all,
        call.result());
  }

  /** The negative log-likelihood of the targets under log-probabilities [batch, classes, …]. */
  private static final class Likelihood {
    private final HostTensor flat;
    private final HostTensor targets;
    private final Optional<HostTensor> weight;
    private final long ignored;
    private final long reduction;
    private final long classes;
    private final long inner;
    private final double[] losses;
    private double totalWeight;

    Likelihood(HostCall call, HostTensor logProbabilities) {
      var type = logProbabilities.type();
      int dim = type.rank() == 1 ? 0 : 1;
      flat = Views.flat(logProbabilities);
      targets = Views.flat(call.tensor("target"));
      weight = call.optionalTensor("weight");
      ignored = call.integer("ignore_index");
      reduction = call.integer("reduction");
      classes = type.size(dim);
      long behind = 1;
      for (int i = dim + 1; i < type.rank(); i++) {
        behind *= type.size(i);
      }
      inner = behind;
      losses = new double[Math.toIntExact(targets.type().numel())];
      for (int i = 0; i < losses.length; i++) {
        if (counts(i)) {
          losses[i] = -flat.get(place(i, target(i))) * weight(i);
          totalWeight += weight(i);
        }
      }
    }

    boolean counts(int i) {
      return targets.getLong(i) != ignored;
    }

    long target(int i) {
      long target = targets.getLong(i);
      if (target < 0 || target >= classes) {
        throw new HostKernelException(
            "target %d is out of range for %d classes".formatted(target, classes));
      }
      return target;
    }

    long place(int i, long target) {
      return (i / inner * classes + target) * inner + i % inner;
    }

    double weight(int i) {
      return weight.map(w -> w.get(target(i))).orElse(1.0);
    }

    /** Mixes the loss with the mean over all classes. */
    void storeSmoothed(HostTensor result, double smoothing) {
      for (int i = 0; smoothing != 0 && i < losses.length; i++) {
        double all = 0;
        for (int c = 0; counts(i) && c < classes; c++) {
          double own = weight.isPresent() ? weight.get().get(c) : 1;
          all -= flat.get(place(i, c)) * own;
        }
        losses[i] = (1 - smoothing) * losses[i] + smoothing / classes * all;
      }
      store(result);
    }

    void store(HostTensor result) {
      if (reduction == NONE) {
        var values = Views.flat(HostTensor.allocate(result.type().contiguous()));
        for (int i = 0; i < losses.length; i++) {
          values.set(losses[i], i);
        }
        result.copyFrom(values.as(result.type().contiguous()));
        return;
      }
      double sum = 0;
      for (double loss : losses) {
        sum += loss;
      }
      result.set(reduction == MEAN ? sum / totalWeight : sum);
    }
  }

  private static void likelihoodBackward(HostCall call) {
    var loss = new Likelihood(call, call.tensor("self"));
    var grad = Views.flat(call.tensor("grad_output"));
    double total = call.tensor("total_weight").get();
    var result = HostTensor.allocate(call.result().type().contiguous());
    var flat = Views.flat(result);
    for (int i = 0; i < loss.losses.length; i++) {
      if (loss.counts(i)) {
        double incoming = grad.get(loss.reduction == NONE ? i : 0);
        double share = loss.reduction == MEAN ? incoming / total : incoming;
        flat.set(-loss.weight(i) * share, loss.place(i, loss.target(i)));
      }
    }
    call.result().copyFrom(result);
  }

  private static void crossEntropy(HostCall call) {
    var self = call.tensor("self");
    var log = HostTensor.allocate(self.type().contiguous().withDType(DType.F64));
    var classes = new boolean[self.type().rank()];
    classes[self.type().rank() == 1 ? 0 : 1] = true;
    RowsKernel.compute(
        "x - amax(x) - log(sum(exp(x - amax(x))))", ImmutableMap.of("x", self), classes, log);
    if (self.type().sizes().equals(call.tensor("target").type().sizes())) {
      probabilities(call, log);
    } else {
      new Likelihood(call, log).storeSmoothed(call.result(), call.number("label_smoothing"));
    }
  }

  /** The target has a probability for each class; smoothing mixes it with the uniform one. */
  private static void probabilities(HostCall call, HostTensor log) {
    var type = log.type();
    int dim = type.rank() == 1 ? 0 : 1;
    long classes = type.size(dim);
    var operands = new HashMap<String, HostTensor>();
    operands.put("log", log);
    operands.put("target", call.tensor("target"));
    call.optionalTensor("weight")
        .ifPresent(
            weight -> {
              var shaped = weight;
              for (int i = dim + 1; i < type.rank(); i++) {
                shaped = Views.unsqueeze(shaped, shaped.type().rank());
              }
              operands.put("weight", shaped);
            });
    var products =
        "weighted(-log * (target * (1 - label_smoothing) + label_smoothing / %d))"
            .formatted(classes);
    long reduction = call.integer("reduction");
    var gone = new boolean[type.rank()];
    Arrays.fill(gone, reduction != NONE);
    gone[dim] = true;
    RowsKernel.compute(
        call::optionalConstant,
        (reduction == MEAN ? "mean(%%s) * %d".formatted(classes) : "sum(%s)").formatted(products),
        operands,
        type,
        gone,
        call.result());
  }
}
