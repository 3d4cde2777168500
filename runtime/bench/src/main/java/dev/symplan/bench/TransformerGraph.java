package dev.symplan.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Transformer programs of any size, as a capture of a Llama split over eight ranks gives them: RMS
 * norms in f32, grouped-query attention with rotary embeddings, a gated MLP. The widths of the MLPs
 * are drawn from a seed, so that no two layers' buffers fit each other exactly.
 */
public final class TransformerGraph {

  /** Which program. */
  public enum Form {
    /** Inference, split over attention heads and MLP columns: an all-reduce after both. */
    TENSOR_PARALLEL,

    /** Inference, between those also split over the sequence: all-gather and reduce-scatter. */
    SEQUENCE_PARALLEL,

    /** Forward and backward in one graph: every layer's activations live until its gradients. */
    TRAINING
  }

  /** The values that the gradients of a layer are computed from. */
  private record Saved(
      Weights weights,
      Norm attentionNorm,
      Value query,
      Value key,
      Value value,
      ImmutableList<Value> attention,
      Value heads,
      Norm mlpNorm,
      Value gate,
      Value silu,
      Value up,
      Value product) {}

  /** The inputs of a layer. */
  private record Weights(
      Value attentionNorm,
      Value query,
      Value key,
      Value value,
      Value output,
      Value mlpNorm,
      Value gate,
      Value up,
      Value down) {}

  /** A norm's operand, its factors, and its result. */
  private record Norm(Value operand, Value rsqrt, Value result) {}

  private static final int RANKS = 8;
  private static final String GROUP = "tp";
  private static final long TOKENS = 2048;
  private static final long HIDDEN = 4096;
  private static final long HEAD = 128;
  private static final long QUERY_HEADS = 4;

  private final Form form;
  private final DiagnosticSink sink = new DiagnosticSink();
  private final GraphBuilder builder = new GraphBuilder("transformer", Span.NONE, sink);
  private final Map<String, OpDef> defs = new HashMap<>();
  private final List<Saved> saved = new ArrayList<>();
  private final Value cos;
  private final Value sin;
  private final Value x;
  private final Value gradient;
  private final List<Weights> weights = new ArrayList<>();
  private int ops;

  private TransformerGraph(Form form, int layers, long seed) {
    this.form = form;
    var random = new SplittableRandom(seed);
    this.cos = input("cos", 1, 1, TOKENS, HEAD);
    this.sin = input("sin", 1, 1, TOKENS, HEAD);
    this.x = input("x", form == Form.SEQUENCE_PARALLEL ? TOKENS / RANKS : TOKENS, HIDDEN);
    this.gradient = form == Form.TRAINING ? input("gradient", TOKENS, HIDDEN) : x;
    for (int i = 0; i < layers; i++) {
      weights.add(weights("layer" + i + "_", 1024 + 64L * random.nextInt(24)));
    }
  }

  /**
   * {@return a program of as many whole layers as {@code ops} ops make, at least one; the same for
   * the same arguments}
   */
  public static Program of(Form form, int ops, long seed) {
    int opsOfLayer = new TransformerGraph(form, 1, seed).build().ops().size();
    var graph = new TransformerGraph(form, Math.max(1, ops / opsOfLayer), seed).build();
    return new Program(
        ImmutableList.of(ProcessGroup.world(GROUP, RANKS)),
        ImmutableList.of(),
        ImmutableList.of(graph),
        Notes.NONE);
  }

  private Graph build() {
    var result = x;
    for (var layer : weights) {
      result = forward(layer, result);
    }
    builder.output(ref(result));
    if (form == Form.TRAINING) {
      result = gradient;
      for (var layer : saved.reversed()) {
        result = backward(layer, result);
      }
      builder.output(ref(result));
    }
    sink.throwIfErrors();
    return builder.build();
  }

  private Value forward(Weights weights, Value x) {
    var attentionNorm = norm(x, weights.attentionNorm());
    var tokens = gathered(attentionNorm.result());
    var query = rotated(heads(linear(tokens, weights.query()), QUERY_HEADS));
    var key = repeated(rotated(heads(linear(tokens, weights.key()), 1)));
    var value = repeated(heads(linear(tokens, weights.value()), 1));
    var attention =
        calls(
            "aten::_scaled_dot_product_efficient_attention",
            ref(query),
            ref(key),
            ref(value),
            Arg.None.NONE,
            new Arg.Bool(form == Form.TRAINING));
    var heads = flat(attention.getFirst(), QUERY_HEADS);
    var middle = add(x, reduced(linear(heads, weights.output())));
    var mlpNorm = norm(middle, weights.mlpNorm());
    tokens = gathered(mlpNorm.result());
    var gate = linear(tokens, weights.gate());
    var silu = call("aten::silu", ref(gate));
    var up = linear(tokens, weights.up());
    var product = mul(silu, up);
    if (form == Form.TRAINING) {
      saved.add(
          new Saved(
              weights,
              attentionNorm,
              query,
              key,
              value,
              attention,
              heads,
              mlpNorm,
              gate,
              silu,
              up,
              product));
    }
    return add(middle, reduced(linear(product, weights.down())));
  }

  private Weights weights(String name, long width) {
    return new Weights(
        input(name + "attention_norm", HIDDEN),
        input(name + "query", QUERY_HEADS * HEAD, HIDDEN),
        input(name + "key", HEAD, HIDDEN),
        input(name + "value", HEAD, HIDDEN),
        input(name + "output", HIDDEN, QUERY_HEADS * HEAD),
        input(name + "mlp_norm", HIDDEN),
        input(name + "gate", width, HIDDEN),
        input(name + "up", width, HIDDEN),
        input(name + "down", HIDDEN, width));
  }

  private Norm norm(Value x, Value weight) {
    var wide = cast(x, DType.F32);
    var square = call("aten::pow.Tensor_Scalar", ref(wide), new Arg.Int(2));
    var mean = mean(square);
    var rsqrt = call("aten::rsqrt", ref(call("aten::add.Tensor", ref(mean), new Arg.Float(1e-6))));
    return new Norm(x, rsqrt, mul(weight, cast(mul(wide, rsqrt), DType.BF16)));
  }

  private Value gathered(Value x) {
    return form == Form.SEQUENCE_PARALLEL
        ? waited("all_gather_into_tensor", ref(x), new Arg.Int(RANKS), new Arg.Str(GROUP))
        : x;
  }

  private Value reduced(Value x) {
    return form == Form.SEQUENCE_PARALLEL
        ? waited(
            "reduce_scatter_tensor",
            ref(x),
            new Arg.Str("sum"),
            new Arg.Int(RANKS),
            new Arg.Str(GROUP))
        : waited("all_reduce", ref(x), new Arg.Str("sum"), new Arg.Str(GROUP));
  }

  private Value waited(String collective, Arg... args) {
    var started = call("_c10d_functional::" + collective, args);
    return call("_c10d_functional::wait_tensor", ref(started));
  }

  private Value linear(Value x, Value weight) {
    return mm(x, transposed(weight));
  }

  private Value heads(Value x, long count) {
    var split = reshape(x, 1, TOKENS, count, HEAD);
    return call("aten::permute", ref(split), Arg.Seq.of(0, 2, 1, 3));
  }

  private Value flat(Value heads, long count) {
    return reshape(call("aten::permute", ref(heads), Arg.Seq.of(0, 2, 1, 3)), TOKENS, count * HEAD);
  }

  private Value rotated(Value x) {
    return add(mul(x, cos), mul(turned(x, false), sin));
  }

  /** The halves of each head in each other's places, one of them negative. */
  private Value turned(Value x, boolean back) {
    var low = slice(x, 0, HEAD / 2);
    var high = slice(x, HEAD / 2, Long.MAX_VALUE);
    return back ? cat(high, call("aten::neg", ref(low))) : cat(call("aten::neg", ref(high)), low);
  }

  private Value repeated(Value x) {
    var wide = call("aten::unsqueeze", ref(x), new Arg.Int(2));
    var all = call("aten::expand", ref(wide), Arg.Seq.of(1, 1, QUERY_HEADS, TOKENS, HEAD));
    return reshape(all, 1, QUERY_HEADS, TOKENS, HEAD);
  }

  private Value backward(Saved layer, Value gradient) {
    var weights = layer.weights();
    var product = backward(gradient, weights.down(), layer.product());
    var up = mul(product, layer.silu());
    var gate = call("aten::silu_backward", ref(mul(product, layer.up())), ref(layer.gate()));
    var tokens = layer.mlpNorm().result();
    var inner = add(backward(up, weights.up(), tokens), backward(gate, weights.gate(), tokens));
    var middle = add(gradient, backward(layer.mlpNorm(), weights.mlpNorm(), reduced(inner)));

    var heads = heads(backward(middle, weights.output(), layer.heads()), QUERY_HEADS);
    var attention = attentionBackward(layer, heads);
    var query = flat(rotatedBack(attention.get(0)), QUERY_HEADS);
    var key = flat(rotatedBack(summed(attention.get(1))), 1);
    var value = flat(summed(attention.get(2)), 1);
    tokens = layer.attentionNorm().result();
    inner = backward(query, weights.query(), tokens);
    inner = add(inner, backward(key, weights.key(), tokens));
    inner = add(inner, backward(value, weights.value(), tokens));
    return add(middle, backward(layer.attentionNorm(), weights.attentionNorm(), reduced(inner)));
  }

  /** {@return the gradient of a product's operand; that of its weight is an output} */
  private Value backward(Value gradient, Value weight, Value operand) {
    builder.output(ref(mm(transposed(gradient), operand)));
    return mm(gradient, weight);
  }

  private ImmutableList<Value> attentionBackward(Saved layer, Value gradient) {
    return calls(
        "aten::_scaled_dot_product_efficient_attention_backward",
        ref(gradient),
        ref(layer.query()),
        ref(layer.key()),
        ref(layer.value()),
        Arg.None.NONE,
        ref(layer.attention().get(0)),
        ref(layer.attention().get(1)),
        ref(layer.attention().get(2)),
        ref(layer.attention().get(3)),
        new Arg.Float(0),
        new Arg.Seq(
            ImmutableList.of(
                new Arg.Bool(true), new Arg.Bool(true), new Arg.Bool(true), new Arg.Bool(false))));
  }

  private Value rotatedBack(Value gradient) {
    return add(mul(gradient, cos), turned(mul(gradient, sin), true));
  }

  private Value summed(Value heads) {
    return call("aten::sum.dim_IntList", ref(heads), Arg.Seq.of(1), new Arg.Bool(true));
  }

  private Value backward(Norm norm, Value weight, Value gradient) {
    var normed = mul(cast(norm.operand(), DType.F32), norm.rsqrt());
    var wide = cast(gradient, DType.F32);
    var ofWeight = call("aten::sum.dim_IntList", ref(mul(wide, normed)), Arg.Seq.of(0));
    builder.output(ref(cast(ofWeight, DType.BF16)));
    var scaled = mul(wide, weight);
    var share = mul(normed, mean(mul(scaled, normed)));
    var difference = call("aten::sub.Tensor", ref(scaled), ref(share));
    return cast(mul(difference, norm.rsqrt()), DType.BF16);
  }

  private Value input(String name, long... sizes) {
    return builder.input(name, TensorType.contiguous(DType.BF16, sizes), Span.NONE);
  }

  private Value add(Value a, Value b) {
    return call("aten::add.Tensor", ref(a), ref(b));
  }

  private Value mul(Value a, Value b) {
    return call("aten::mul.Tensor", ref(a), ref(b));
  }

  private Value mm(Value a, Value b) {
    return call("aten::mm", ref(a), ref(b));
  }

  private Value transposed(Value x) {
    return call("aten::permute", ref(x), Arg.Seq.of(1, 0));
  }

  private Value mean(Value x) {
    return call("aten::mean.dim", ref(x), Arg.Seq.of(-1), new Arg.Bool(true));
  }

  private Value reshape(Value x, long... sizes) {
    return call("aten::reshape", ref(x), Arg.Seq.of(sizes));
  }

  private Value slice(Value x, long from, long to) {
    return call("aten::slice.Tensor", ref(x), new Arg.Int(3), new Arg.Int(from), new Arg.Int(to));
  }

  private Value cat(Value a, Value b) {
    return call("aten::cat", new Arg.Seq(ImmutableList.of(ref(a), ref(b))), new Arg.Int(-1));
  }

  private Value cast(Value x, DType dtype) {
    return call("prims::convert_element_type", ref(x), new Arg.Dtype(dtype));
  }

  private static Arg ref(Value value) {
    return new Arg.Ref(value);
  }

  private Value call(String op, Arg... args) {
    return calls(op, args).getFirst();
  }

  private ImmutableList<Value> calls(String op, Arg... args) {
    var def = defs.computeIfAbsent(op, BuiltinOps.registry()::get);
    var name = def.name().name() + "_" + ops++;
    var results = new ArrayList<ResultSpec>();
    int count = def.schema().results().size();
    for (int i = 0; i < count; i++) {
      results.add(ResultSpec.named(count == 1 ? name : name + "_" + i, Span.NONE));
    }
    var bound = ArgBinder.bind(def.schema(), List.of(args), Map.of());
    return builder.op(def, bound, results, Span.NONE, Notes.NONE);
  }
}
