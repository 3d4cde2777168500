package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * Scaled dot-product attention of tensors [batch, heads, rows, features], in all its signatures.
 *
 * <p>Head by head: {@code softmax(scale · Q Kᵀ + bias) V}, kept in f32 (f64 for f64) and rounded
 * once. A key head serves as many neighbouring query heads as there are. The causal mask starts at
 * the top left.
 */
final class AttentionKernels {
  private AttentionKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::scaled_dot_product_attention", call -> forward(call, "attn_mask"))
        .put("aten::_scaled_dot_product_efficient_attention", call -> forward(call, "attn_bias"))
        .put("aten::_scaled_dot_product_flash_attention", call -> forward(call, ""))
        .put("aten::_scaled_dot_product_cudnn_attention", call -> forward(call, "attn_bias"))
        .put(
            "aten::_scaled_dot_product_flash_attention_for_cpu", call -> forward(call, "attn_mask"))
        .put(
            "aten::_scaled_dot_product_efficient_attention_backward",
            call -> backward(call, "grad_out_", "attn_bias"))
        .put(
            "aten::_scaled_dot_product_flash_attention_backward",
            call -> backward(call, "grad_out", ""))
        .put(
            "aten::_scaled_dot_product_cudnn_attention_backward",
            call -> backward(call, "grad_out", "attn_bias"))
        .put(
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
            call -> backward(call, "grad_out", "attn_mask"))
        .buildOrThrow();
  }

  /** The operands with four dimensions, and the scores of one head. */
  private static final class Problem {
    final HostTensor query;
    final HostTensor key;
    final HostTensor value;
    final Optional<HostTensor> bias;
    final boolean causal;
    final double scale;
    final DType dtype;
    final long batches;
    final long heads;
    final long rows;
    final long columns;

    Problem(HostCall call, String biasParam) {
      if (call.number("dropout_p") != 0) {
        throw new UnsupportedOperationException(
            "the host backend does not compute attention with dropout");
      }
      query = fourDimensional(call.tensor("query"));
      heads = query.type().size(1);
      key = fourDimensional(call.tensor("key"));
      value = fourDimensional(call.tensor("value"));
      causal = call.bool("is_causal");
      scale = call.has("scale") ? call.number("scale") : 1 / Math.sqrt(query.type().size(3));
      dtype = MatrixProduct.wide(query.dtype());
      batches = query.type().size(0);
      rows = query.type().size(2);
      columns = key.type().size(2);
      bias =
          !biasParam.isEmpty() && call.value(biasParam) instanceof Value.Tensor(HostTensor given)
              ? Optional.of(fourDimensional(Views.expand(given, scoreSizes(call))))
              : Optional.empty();
    }

    /** The shape of all scores, with as many dimensions as the operands have. */
    private ImmutableLongArray scoreSizes(HostCall call) {
      var sizes = call.tensor("query").type().sizes().toArray();
      sizes[sizes.length - 1] = columns;
      return ImmutableLongArray.copyOf(sizes);
    }

    HostTensor matrix(long size0, long size1) {
      return HostTensor.allocate(TensorType.contiguous(dtype, size0, size1));
    }

    HostTensor queryHead(long batch, long head) {
      return Head.of(query, batch, head, dtype);
    }

    HostTensor keyHead(long batch, long head) {
      return Head.of(key, batch, keyIndex(head), dtype);
    }

    HostTensor valueHead(long batch, long head) {
      return Head.of(value, batch, keyIndex(head), dtype);
    }

    long keyIndex(long head) {
      return head / (heads / key.type().size(1));
    }

    /** {@return scale · Q Kᵀ + bias, with -inf where masked} */
    HostTensor scores(long batch, long head) {
      var scores = matrix(rows, columns);
      MatrixProduct.multiply(
          queryHead(batch, head), Views.transpose(keyHead(batch, head), 0, 1), scores);
      Pointwise.apply(scores, Pointwise.unary(x -> x * scale), scores);
      if (bias.isPresent()) {
        var own = Head.select(bias.get(), batch, head);
        Pointwise.apply(
            scores,
            own.dtype() == DType.BOOL
                ? Pointwise.binary((x, keep) -> keep != 0 ? x : Double.NEGATIVE_INFINITY)
                : Pointwise.binary(Double::sum),
            scores,
            own);
      }
      for (long row = 0; causal && row < Math.min(rows, columns - 1); row++) {
        CreationKernels.fill(
            Views.narrow(Views.narrow(scores, 0, row, 1), 1, row + 1, columns - row - 1),
            Double.NEGATIVE_INFINITY);
      }
      return scores;
    }
  }

  /** The matrices of one head. */
  private static final class Head {
    private Head() {}

    static HostTensor select(HostTensor tensor, long batch, long head) {
      return Views.select(Views.select(tensor, 0, batch), 0, head);
    }

    static HostTensor of(HostTensor tensor, long batch, long head, DType dtype) {
      var own = select(tensor, batch, head);
      return own.copyAs(own.type().contiguous().withDType(dtype));
    }
  }

  /** Leading dimensions are taken together; missing ones are 1. */
  private static HostTensor fourDimensional(HostTensor tensor) {
    int rank = tensor.type().rank();
    var shaped = tensor;
    for (int i = rank; i < 4; i++) {
      shaped = Views.unsqueeze(shaped, 0);
    }
    if (rank > 4) {
      long outer = 1;
      for (int i = 0; i < rank - 3; i++) {
        outer *= tensor.type().size(i);
      }
      shaped =
          Views.reshaped(
              tensor,
              outer,
              tensor.type().size(rank - 3),
              tensor.type().size(rank - 2),
              tensor.type().size(rank - 1));
    }
    return shaped;
  }

  private static void forward(HostCall call, String bias) {
    var problem = new Problem(call, bias);
    var result = call.result(0);
    var output = MatrixProduct.wide(fourDimensional(result).type());
    var logSums = logSums(call);
    for (long batch = 0; batch < problem.batches; batch++) {
      for (long head = 0; head < problem.heads; head++) {
        var scores = problem.scores(batch, head);
        long b = batch;
        long h = head;
        var row = new long[1];
        AlongDim.forEach(
            1,
            List.of(scores),
            rows -> {
              var values = rows[0].load();
              double sum = softmax(values);
              rows[0].store(values);
              logSums.ifPresent(tensor -> tensor.set(sum, b, h, row[0]));
              row[0]++;
            });
        MatrixProduct.multiply(
            scores, problem.valueHead(batch, head), Head.select(output, batch, head));
      }
    }
    result.copyFrom(output.as(result.type().contiguous().withDType(output.dtype())));
    for (int i = 2; i < call.resultCount(); i++) {
      if (call.hasResult(i)) {
        CreationKernels.fill(call.result(i), 0);
      }
    }
  }

  /** The result that keeps the log-sum-exp of each row; rows that the kernels add are infinite. */
  private static Optional<HostTensor> logSums(HostCall call) {
    if (call.resultCount() < 2 || !call.hasResult(1) || call.result(1).type().numel() == 0) {
      return Optional.empty();
    }
    CreationKernels.fill(call.result(1), Double.POSITIVE_INFINITY);
    return Optional.of(threeDimensional(call.result(1)));
  }

  private static HostTensor threeDimensional(HostTensor logSums) {
    return logSums.type().rank() == 4 ? Views.select(logSums, 3, 0) : logSums;
  }

  /** Turns scores into weights; a row that is masked altogether becomes 0. */
  private static double softmax(double[] values) {
    double max = Arrays.stream(values).reduce(Double.NEGATIVE_INFINITY, Math::max);
    if (max == Double.NEGATIVE_INFINITY) {
      Arrays.fill(values, 0);
      return Double.POSITIVE_INFINITY;
    }
    double sum = 0;
    for (int i = 0; i < values.length; i++) {
      values[i] = Math.exp(values[i] - max);
      sum += values[i];
    }
    for (int i = 0; i < values.length; i++) {
      values[i] /= sum;
    }
    return max + Math.log(sum);
  }

  /**
   * The weights are computed again from the kept log-sum-exp; then, as in FlashAttention (Dao et
   * al. 2022), {@code dV = Pᵀ dO}, {@code dS = P ∘ (dO Vᵀ - rowsum(dO ∘ O))}, {@code dQ = scale ·
   * dS K}, {@code dK = scale · dSᵀ Q}; the bias's gradient is dS.
   */
  private static void backward(HostCall call, String gradient, String bias) {
    var problem = new Problem(call, bias);
    var grad = call.tensor(gradient);
    var out = call.tensor("out");
    var logSums = threeDimensional(call.tensor("logsumexp"));
    var sums = new Gradients(problem, call);
    for (long batch = 0; batch < problem.batches; batch++) {
      for (long head = 0; head < problem.heads; head++) {
        var dOut = Head.of(grad, batch, head, problem.dtype);
        var weights = problem.scores(batch, head);
        var dWeights = problem.matrix(problem.rows, problem.columns);
        MatrixProduct.multiply(
            dOut, Views.transpose(problem.valueHead(batch, head), 0, 1), dWeights);
        var own = Head.of(out, batch, head, problem.dtype);
        var keptSums = Views.narrow(Head.select(logSums, batch, head), 0, 0, problem.rows);
        Pointwise.apply(
            weights,
            Pointwise.binary(
                (score, sum) -> score == Double.NEGATIVE_INFINITY ? 0 : Math.exp(score - sum)),
            weights,
            Views.unsqueeze(keptSums, 1));
        var product = problem.matrix(problem.rows, dOut.type().size(1));
        Pointwise.apply(product, Pointwise.binary((a, b) -> a * b), dOut, own);
        var delta = problem.matrix(problem.rows, 1);
        RowsKernel.sum(product, List.of(1), delta);
        Pointwise.apply(
            dWeights, Pointwise.ternary((dp, p, d) -> p * (dp - d)), dWeights, weights, delta);
        sums.add(batch, head, weights, dWeights, dOut);
      }
    }
    sums.store();
  }

  /** Sums over the query heads that share a key head, and over what a bias is broadcast along. */
  private static final class Gradients {
    private final Problem problem;
    private final HostCall call;
    private final HostTensor dQuery;
    private final HostTensor dKey;
    private final HostTensor dValue;
    private final Optional<HostTensor> dBias;

    Gradients(Problem problem, HostCall call) {
      this.problem = problem;
      this.call = call;
      dQuery = MatrixProduct.wide(problem.query.type());
      dKey = MatrixProduct.wide(problem.key.type());
      dValue = MatrixProduct.wide(problem.value.type());
      boolean wanted = call.resultCount() > 3 && call.hasResult(3);
      dBias = wanted ? Optional.of(MatrixProduct.wide(call.result(3).type())) : Optional.empty();
    }

    void add(long batch, long head, HostTensor weights, HostTensor dScores, HostTensor dOut) {
      long keyHead = problem.keyIndex(head);
      addProduct(
          dScores, problem.keyHead(batch, head), problem.scale, Head.select(dQuery, batch, head));
      addProduct(
          Views.transpose(dScores, 0, 1),
          problem.queryHead(batch, head),
          problem.scale,
          Head.select(dKey, batch, keyHead));
      addProduct(Views.transpose(weights, 0, 1), dOut, 1, Head.select(dValue, batch, keyHead));
      dBias.ifPresent(
          sum -> {
            var sizes = ImmutableLongArray.builder();
            for (var size : List.of(problem.batches, problem.heads, problem.rows)) {
              sizes.add(size);
            }
            var whole = Views.expand(sum, sizes.add(problem.columns).build());
            var target = Head.select(whole, batch, head);
            for (long i = 0; i < problem.rows; i++) {
              for (long j = 0; j < problem.columns; j++) {
                target.set(target.get(i, j) + dScores.get(i, j), i, j);
              }
            }
          });
    }

    private void addProduct(HostTensor left, HostTensor right, double scale, HostTensor sum) {
      var product = problem.matrix(left.type().size(0), right.type().size(1));
      MatrixProduct.multiply(left, right, product);
      Pointwise.apply(sum, Pointwise.binary((a, b) -> a + scale * b), sum, product);
    }

    void store() {
      var sums = new ArrayList<HostTensor>(List.of(dQuery, dKey, dValue));
      dBias.ifPresent(sums::add);
      for (int i = 0; i < sums.size(); i++) {
        if (call.hasResult(i)) {
          call.result(i).copyFrom(sums.get(i));
        }
      }
    }
  }
}
