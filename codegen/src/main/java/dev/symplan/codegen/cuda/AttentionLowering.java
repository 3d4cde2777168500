package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Scaled dot-product attention of tensors [batch, heads, rows, features], in all its signatures but
 * with dropout.
 */
final class AttentionLowering {

  private static final ImmutableSet<String> OPS =
      ImmutableSet.of(
          "aten::scaled_dot_product_attention",
          "aten::_scaled_dot_product_efficient_attention",
          "aten::_scaled_dot_product_flash_attention",
          "aten::_scaled_dot_product_cudnn_attention",
          "aten::_scaled_dot_product_flash_attention_for_cpu",
          "aten::_scaled_dot_product_efficient_attention_backward",
          "aten::_scaled_dot_product_flash_attention_backward",
          "aten::_scaled_dot_product_cudnn_attention_backward",
          "aten::_scaled_dot_product_flash_attention_for_cpu_backward");

  /**
   * The operands of attention; all tensors have four dimensions.
   *
   * @param rank whose memory it is
   * @param bias of the shape of all scores
   * @param scale that scores are multiplied with
   */
  record Problem(
      int rank,
      TensorRef query,
      TensorRef key,
      TensorRef value,
      Optional<TensorRef> bias,
      boolean causal,
      double scale,
      StreamKind stream,
      String label) {

    /** {@return whether all is computed in f64} */
    boolean wide() {
      return query.type().dtype() == DType.F64;
    }

    /** {@return how many heads of queries share one of keys} */
    long group() {
      return query.type().size(1) / Math.max(1, key.type().size(1));
    }
  }

  /**
   * The tensors that gradients are computed from.
   *
   * @param grad of the result
   * @param out the result
   * @param logs the logarithm of each row's sum
   */
  record Saved(TensorRef grad, TensorRef out, TensorRef logs) {}

  private final int rank;
  private final OpArguments arguments;
  private final Problem problem;

  /** As it is in memory: of size 1 if it is broadcast. */
  private final Optional<TensorRef> bias;

  private AttentionLowering(int rank, OpArguments arguments) {
    this.rank = rank;
    this.arguments = arguments;
    if (arguments.number("dropout_p").doubleValue() != 0) {
      throw arguments.unsupported(arguments.name() + " with dropout");
    }
    var query = fourDimensional(arguments.tensor("query"));
    var key = fourDimensional(arguments.tensor("key"));
    var scores =
        ImmutableLongArray.of(
            query.type().size(0), query.type().size(1), query.type().size(2), key.type().size(2));
    this.bias =
        AttentionOps.bias(arguments.op().def())
            .flatMap(arguments::optionalTensor)
            .map(this::fourDimensional);
    var dtype = query.type().dtype();
    if (!CTypes.computes(dtype) || !dtype.isFloat()) {
      throw arguments.unsupported("%s of %s".formatted(arguments.name(), dtype.shortName()));
    }
    this.problem =
        new Problem(
            rank,
            query,
            key,
            fourDimensional(arguments.tensor("value")),
            bias.map(ref -> Moves.expand(ref, scores)),
            arguments.flag("is_causal"),
            arguments.has("scale")
                ? arguments.number("scale").doubleValue()
                : 1 / Math.sqrt(query.type().size(3)),
            arguments.op().stream(),
            arguments.op().name());
  }

  static boolean supports(String op) {
    return OPS.contains(op);
  }

  /**
   * {@return the steps of a rank for attention or its gradients}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation
   */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments) {
    var lowering = new AttentionLowering(rank, arguments);
    return AttentionOps.isBackward(arguments.op().def()) ? lowering.backward() : lowering.forward();
  }

  /** Missing dimensions are 1. */
  private TensorRef fourDimensional(TensorRef ref) {
    var type = ref.type();
    if (type.rank() > 4) {
      throw arguments.unsupported("%s of %s".formatted(arguments.name(), type));
    }
    var sizes = new long[] {1, 1, 1, 1};
    for (int dim = 0; dim < type.rank(); dim++) {
      sizes[4 - type.rank() + dim] = type.size(dim);
    }
    return Moves.expand(ref, ImmutableLongArray.copyOf(sizes));
  }

  private ImmutableList<DeviceStep> forward() {
    var steps = ImmutableList.<DeviceStep>builder();
    var out = fourDimensional(arguments.result());
    var logs = arguments.result(1).filter(ref -> ref.type().numel() > 0);
    for (int i = 1; i < arguments.op().results().size(); i++) {
      var extra = arguments.result(i).filter(ref -> ref.type().numel() > 0);
      if (extra.isPresent()) {
        boolean padded = i == 1 && extra.get().type().size(2) > problem.query().type().size(2);
        if (i > 1 || padded) {
          var value = i == 1 ? Double.POSITIVE_INFINITY : 0;
          steps.addAll(PositionOps.fill(rank, arguments, extra.get(), value));
        }
      }
    }
    if (out.type().numel() > 0) {
      steps.addAll(forward(out, logs));
    }
    return steps.build();
  }

  private ImmutableList<DeviceStep> forward(TensorRef out, Optional<TensorRef> logs) {
    ImmutableList<DeviceStep> generated =
        SplitAttention.suits(problem)
            ? SplitAttention.launches(problem, out, logs)
            : ImmutableList.of(
                TiledAttention.suits(problem)
                    ? TiledAttention.launch(problem, out, logs)
                    : AttentionKernel.forward(problem, out, logs));
    var step =
        new DeviceStep.Attention(
            problem.stream(), scores(), problem.value(), out, logs, generated, problem.label());
    return AttentionForm.suitsLibrary(step) && !SplitAttention.isFaster(problem)
        ? ImmutableList.of(step)
        : generated;
  }

  private DeviceStep.Scores scores() {
    return new DeviceStep.Scores(
        problem.query(), problem.key(), bias, problem.causal(), problem.scale());
  }

  /** Where the gradients of all scores go: beside the arenas if a bias is one for several. */
  private TensorRef ofScores(TensorRef ofBias) {
    var scores = problem.bias().orElseThrow().type();
    return ofBias.type().sizes().equals(scores.sizes())
        ? ofBias
        : arguments
            .scratch()
            .take(TensorType.contiguous(problem.wide() ? DType.F64 : DType.F32, scores.sizes()));
  }

  /** Adds up what a bias is broadcast along. */
  private ImmutableList<DeviceStep> sum(TensorRef ofScores, TensorRef ofBias) {
    var to = fourDimensional(ofBias);
    if (ofScores.type().numel() == 0 || arguments.tensor("query").type().numel() == 0) {
      return PositionOps.fill(rank, arguments, to, 0);
    }
    var dims =
        IntStream.range(0, 4)
            .filter(dim -> to.type().size(dim) != ofScores.type().size(dim))
            .<Arg>mapToObj(Arg.Int::new)
            .collect(ImmutableList.toImmutableList());
    var op = arguments.op();
    return LocalLowering.lower(
        rank,
        new LocalOp(
            op.stream(),
            BuiltinOps.registry().get("aten::sum.dim_IntList"),
            ImmutableList.of(
                new Operand.Tensor(ofScores),
                new Operand.Constant(new Arg.Seq(dims)),
                new Operand.Constant(new Arg.Bool(true)),
                new Operand.Constant(Arg.None.NONE)),
            ImmutableList.of(Optional.of(to)),
            Optional.empty(),
            op.name(),
            op.span()),
        arguments.scratch());
  }

  private ImmutableList<DeviceStep> backward() {
    var steps = ImmutableList.<DeviceStep>builder();
    var saved =
        new Saved(
            fourDimensional(arguments.tensor(AttentionOps.gradient(arguments.op().def()))),
            fourDimensional(arguments.tensor("out")),
            arguments.tensor("logsumexp"));
    var ofQuery = arguments.result(0).map(this::fourDimensional);
    var ofKey = arguments.result(1).map(this::fourDimensional);
    var ofValue = arguments.result(2).map(this::fourDimensional);
    var ofBias = arguments.result(3);
    var ofScores = ofBias.map(this::ofScores);
    if ((ofQuery.isPresent() || ofBias.isPresent()) && saved.grad().type().numel() > 0) {
      steps.add(AttentionKernel.gradientOfQueries(problem, saved, ofQuery, ofScores));
    }
    if (ofBias.isPresent() && !ofBias.equals(ofScores)) {
      steps.addAll(sum(ofScores.orElseThrow(), ofBias.get()));
    }
    if ((ofKey.isPresent() || ofValue.isPresent()) && problem.key().type().numel() > 0) {
      steps.add(AttentionKernel.gradientsOfKeys(problem, saved, ofKey, ofValue));
    }
    var generated = steps.build();
    if (ofQuery.isEmpty() || ofKey.isEmpty() || ofValue.isEmpty() || ofBias.isPresent()) {
      return generated;
    }
    var step =
        new DeviceStep.AttentionBackward(
            problem.stream(),
            scores(),
            problem.value(),
            saved.out(),
            saved.logs(),
            saved.grad(),
            ofQuery.get(),
            ofKey.get(),
            ofValue.get(),
            generated,
            problem.label());
    return AttentionForm.suitsLibrary(step) ? ImmutableList.of(step) : generated;
  }
}
