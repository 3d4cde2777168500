package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Scaled dot-product attention, as its kernels give it: their results differ in layout and in what
 * they keep for the backward op (torch/_meta_registrations.py).
 */
public final class AttentionOps {
  /** The efficient kernel keeps a multiple of this many rows of log-sum-exp. */
  private static final long EFFICIENT_ROWS = 32;

  /** The efficient backward kernel aligns the rows of the gradient of the bias. */
  private static final long BIAS_ROW = 16;

  /** The parameters that are added to scores. */
  private static final ImmutableList<String> BIASES = ImmutableList.of("attn_mask", "attn_bias");

  private AttentionOps() {}

  /** {@return the parameter of attention that is added to scores, or hides some} */
  public static Optional<String> bias(OpDef def) {
    return def.name().name().contains("scaled_dot_product")
        ? BIASES.stream().filter(def.schema()::hasParam).findFirst()
        : Optional.empty();
  }

  /** {@return whether an op is attention or gives its gradients} */
  public static boolean is(OpDef def) {
    return def.has(OpTrait.ATTENTION);
  }

  /** {@return whether attention gives gradients} */
  public static boolean isBackward(OpDef def) {
    return def.name().name().endsWith("_backward");
  }

  /** {@return the parameter that is the gradient of attention's result} */
  public static String gradient(OpDef backward) {
    return backward.schema().hasParam("grad_out_") ? "grad_out_" : "grad_out";
  }

  /** {@return whether the graph itself says how to scale, mask and drop; its caller may instead} */
  public static boolean isKnown(OpCall call) {
    return Stream.of("dropout_p", "is_causal", "scale")
        .filter(call.schema()::hasParam)
        .noneMatch(param -> call.arg(param) instanceof Arg.Ref);
  }

  /** {@return the factor of scores before the softmax} */
  public static double scale(OpCall call) {
    var query = call.tensor("query");
    return call.has("scale") ? call.number("scale") : 1 / Math.sqrt(query.size(query.rank() - 1));
  }

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.single(
                """
                aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor
                """,
                AttentionOps::composite),
            Table.ops(
                """
                aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)
                """,
                AttentionOps::efficient),
            Table.ops(
                """
                aten::_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)
                """,
                AttentionOps::efficientBackward),
            Table.ops(
                """
                aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)
                """,
                AttentionOps::flash),
            Table.ops(
                """
                aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)
                """,
                AttentionOps::cudnn),
            Table.ops(
                """
                aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)
                """,
                AttentionOps::flashBackward),
            Table.ops(
                """
                aten::_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor attn_bias, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)
                """,
                AttentionOps::cudnnBackward),
            Table.ops(
                """
                aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)
                """,
                AttentionOps::cpu),
            Table.ops(
                """
                aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)
                """,
                AttentionOps::cpuBackward))
        .flatMap(specs -> specs)
        .map(spec -> spec.flops(AttentionOps::flops).traits(OpTrait.ATTENTION));
  }

  /**
   * Two products, over the features and over the keys; backward, five. A mask leaves none of it
   * out.
   */
  private static double flops(OpCall call, TensorType result) {
    var key = call.tensor("key");
    int products = isBackward(call.def()) ? 5 : 2;
    return 2.0 * products * result.numel() * key.size(key.rank() - 2);
  }

  /** Checks what all kernels need; the operands are [batch, heads, rows, features]. */
  private static void check(OpCall call, boolean groups) {
    var query = call.tensor("query");
    var key = call.tensor("key");
    var value = call.tensor("value");
    int rank = query.rank();
    if (rank < 2 || key.rank() != rank || value.rank() != rank) {
      throw new OpTypeException(
          "query, key and value must have the same number of dimensions, at least 2: %s, %s, %s"
              .formatted(query, key, value));
    }
    if (query.dtype() != key.dtype() || query.dtype() != value.dtype()) {
      throw new OpTypeException(
          "query, key and value differ in element type: %s, %s, %s"
              .formatted(
                  query.dtype().shortName(), key.dtype().shortName(), value.dtype().shortName()));
    }
    if (!query.dtype().isFloat()) {
      throw new OpTypeException(
          "query, key and value must be floats, not " + query.dtype().shortName());
    }
    if (query.size(rank - 1) != key.size(rank - 1)) {
      throw new OpTypeException(
          "query has %s features, but key has %s"
              .formatted(query.size(rank - 1), key.size(rank - 1)));
    }
    var shared = key.sizes().subArray(0, rank - 1);
    if (!shared.equals(value.sizes().subArray(0, rank - 1))) {
      throw new OpTypeException(
          "key and value may differ only in their features, but are %s and %s"
              .formatted(key, value));
    }
    if (rank > 2) {
      checkHeads(query.size(rank - 3), key.size(rank - 3), groups);
      var batch = query.sizes().subArray(0, rank - 3);
      if (!batch.equals(key.sizes().subArray(0, rank - 3))) {
        throw new OpTypeException(
            "query and key must have the same batch sizes, but are %s and %s".formatted(query, key),
            "aten::expand repeats a batch without a copy");
      }
    }
    for (var name : BIASES) {
      if (call.schema().hasParam(name) && call.has(name)) {
        checkBias(call, name);
      }
    }
  }

  private static void checkBias(OpCall call, String name) {
    var query = call.tensor("query");
    var bias = call.tensor(name);
    boolean known = bias.dtype() == query.dtype() || bias.dtype() == DType.F32;
    if (!known && bias.dtype() != DType.BOOL) {
      throw new OpTypeException(
          "%s must be %s, like query, f32 or b8, not %s"
              .formatted(name, query.dtype().shortName(), bias.dtype().shortName()));
    }
    int last = query.rank() - 1;
    Shapes.checkBroadcastsTo(
        name, bias.sizes(), Shapes.with(query.sizes(), last, call.tensor("key").size(last - 1)));
  }

  private static void checkHeads(long queryHeads, long keyHeads, boolean groups) {
    if (groups ? keyHeads != 0 && queryHeads % keyHeads == 0 : queryHeads == keyHeads) {
      return;
    }
    throw new OpTypeException(
        "query has %s heads, but key has %s".formatted(queryHeads, keyHeads),
        "with enable_gqa, query's heads must be a multiple of key's");
  }

  private static void checkFour(OpCall call) {
    check(call, true);
    if (call.tensor("query").rank() != 4) {
      throw new OpTypeException(
          "query must be [batch, heads, rows, features], but is " + call.tensor("query"));
    }
  }

  /** Checks what kernels need whose results lie as query does. */
  private static void checkOneWidth(OpCall call) {
    checkFour(call);
    long features = call.tensor("query").size(3);
    if (call.tensor("value").size(3) != features) {
      throw new OpTypeException(
          "value has %s features, but query has %s"
              .formatted(call.tensor("value").size(3), features),
          "the efficient and the cuDNN kernels allow another width");
    }
  }

  /** Checks the results of the forward op and their gradient, the parameter {@code gradient}. */
  private static void checkSaved(OpCall call, String gradient) {
    var query = call.tensor("query");
    var sizes = outputSizes(call);
    for (var name : List.of(gradient, "out")) {
      var type = call.tensor(name);
      if (type.dtype() != query.dtype() || !type.sizes().equals(sizes)) {
        throw new OpTypeException(
            "%s must be %s, like the result, but is %s"
                .formatted(name, TensorType.contiguous(query.dtype(), sizes), type));
      }
    }
    var sums = call.tensor("logsumexp");
    boolean fits =
        sums.dtype().isFloat()
            && (sums.rank() == 3 || sums.rank() == 4 && sums.size(3) == 1)
            && sums.size(0) == query.size(0)
            && sums.size(1) == query.size(1)
            && sums.size(2) >= query.size(2);
    if (!fits) {
      throw new OpTypeException(
          "logsumexp must be floats [%s, %s, %s], one for each row of query, but is %s"
              .formatted(query.size(0), query.size(1), query.size(2), sums));
    }
  }

  private static OpResult composite(OpCall call) {
    check(call, call.bool("enable_gqa"));
    var query = call.tensor("query");
    int last = query.rank() - 1;
    return OpResult.fresh(
        query.dtype(), Shapes.with(query.sizes(), last, call.tensor("value").size(last)));
  }

  private static ImmutableLongArray outputSizes(OpCall call) {
    var query = call.tensor("query");
    return Shapes.with(query.sizes(), 3, call.tensor("value").size(3));
  }

  /**
   * {@return a tensor [batch, heads, rows, features] that lies as [batch, rows, heads, features]}
   */
  private static TensorType headsInside(TensorType like, ImmutableLongArray sizes) {
    return new TensorType(
        like.dtype(), sizes, Layouts.ordered(sizes, new int[] {3, 1, 2, 0}), MemorySpace.ANY);
  }

  /** The state of the random stream, which the kernels write only if they drop anything. */
  private static OpResult randomState(OpCall call, DType dtype, long... sizes) {
    var type = TensorType.contiguous(dtype, ImmutableLongArray.copyOf(sizes));
    return call.number("dropout_p") == 0 ? OpResult.unspecified(type) : OpResult.fresh(type);
  }

  private static OpResult integer() {
    return OpResult.fresh(ScalarType.INT);
  }

  private static List<OpResult> efficient(OpCall call) {
    checkFour(call);
    var query = call.tensor("query");
    long rows =
        call.bool("compute_log_sumexp")
            ? Math.ceilDiv(query.size(2), EFFICIENT_ROWS) * EFFICIENT_ROWS
            : 0;
    return List.of(
        OpResult.fresh(headsInside(query, outputSizes(call))),
        OpResult.fresh(DType.F32, ImmutableLongArray.of(query.size(0), query.size(1), rows)),
        randomState(call, DType.I64),
        randomState(call, DType.I64));
  }

  private static List<OpResult> efficientBackward(OpCall call) {
    checkFour(call);
    checkSaved(call, "grad_out_");
    var key = call.tensor("key");
    var value = call.tensor("value");
    var query = call.tensor("query");
    return List.of(
        OpResult.fresh(headsInside(query, query.sizes())),
        OpResult.fresh(headsInside(key, key.sizes())),
        OpResult.fresh(headsInside(value, value.sizes())),
        biasGradient(call));
  }

  private static OpResult biasGradient(OpCall call) {
    boolean wanted =
        call.arg("grad_input_mask") instanceof Arg.Seq mask
            && mask.items().size() == 4
            && mask.items().get(3).equals(new Arg.Bool(true));
    if (!wanted || !call.has("attn_bias")) {
      return OpResult.none();
    }
    var bias = call.tensor("attn_bias");
    int last = bias.rank() - 1;
    if (last < 0) {
      throw new OpTypeException("attn_bias must have a dimension");
    }
    long row = Math.ceilDiv(bias.size(last), BIAS_ROW) * BIAS_ROW;
    var aligned = TensorType.contiguousStrides(Shapes.with(bias.sizes(), last, row));
    return OpResult.fresh(Layouts.fresh(bias).withStrides(aligned));
  }

  private static List<OpResult> flash(OpCall call) {
    checkOneWidth(call);
    var query = call.tensor("query");
    var key = call.tensor("key");
    return List.of(
        OpResult.fresh(Layouts.preserved(query)),
        OpResult.fresh(DType.F32, query.sizes().subArray(0, 3)),
        OpResult.none(),
        OpResult.none(),
        integer(),
        integer(),
        randomState(call, DType.U64, 2),
        OpResult.unspecified(TensorType.contiguous(DType.U64, ImmutableLongArray.of())),
        OpResult.fresh(query.dtype(), debugMaskSizes(call, query, key)));
  }

  private static ImmutableLongArray debugMaskSizes(OpCall call, TensorType query, TensorType key) {
    if (!call.bool("return_debug_mask")) {
      return ImmutableLongArray.of(0);
    }
    long block = query.size(3) > 64 ? 128 : 256;
    long columns = Math.ceilDiv(query.size(2), block);
    if (key.size(2) <= 128) {
      columns = 128;
    } else if (key.size(2) <= 256) {
      columns = 256;
    }
    return Shapes.with(query.sizes(), 3, columns);
  }

  private static List<OpResult> cudnn(OpCall call) {
    checkFour(call);
    var query = call.tensor("query");
    return List.of(
        OpResult.fresh(Layouts.like(query, outputSizes(call))),
        OpResult.fresh(DType.F32, Shapes.with(query.sizes(), 3, 1)),
        OpResult.none(),
        OpResult.none(),
        integer(),
        integer(),
        randomState(call, DType.I64),
        randomState(call, DType.I64),
        OpResult.none());
  }

  private static List<OpResult> flashBackward(OpCall call) {
    checkOneWidth(call);
    return gradientsAsOperands(call);
  }

  private static List<OpResult> cudnnBackward(OpCall call) {
    checkFour(call);
    return gradientsAsOperands(call);
  }

  private static List<OpResult> gradientsAsOperands(OpCall call) {
    checkSaved(call, "grad_out");
    return Stream.of("query", "key", "value")
        .map(name -> OpResult.fresh(Layouts.preserved(call.tensor(name))))
        .toList();
  }

  private static List<OpResult> cpu(OpCall call) {
    checkOneWidth(call);
    var query = call.tensor("query");
    var dtype = query.dtype().bytes() < 4 ? DType.F32 : query.dtype();
    var sizes = query.sizes().subArray(0, 3);
    return List.of(
        OpResult.fresh(Layouts.preserved(query)),
        OpResult.fresh(
            new TensorType(
                dtype, sizes, Layouts.ordered(sizes, new int[] {1, 2, 0}), MemorySpace.ANY)));
  }

  private static List<OpResult> cpuBackward(OpCall call) {
    checkOneWidth(call);
    checkSaved(call, "grad_out");
    return Stream.of("query", "key", "value")
        .map(call::tensor)
        .map(type -> OpResult.fresh(headsInside(type, type.sizes())))
        .toList();
  }
}
