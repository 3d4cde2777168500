package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.machine.GeneratedAttention;
import dev.symplan.planner.machine.LibraryAttention;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayList;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * Gives large attention a form for which GPUs have fast kernels. Where cuDNN has one but for the
 * bias or for where rows lie, these change: a mask of bools becomes numbers, all rows of scores get
 * their own, and operands are copied. What our own kernel computes stays. Anything else, above all
 * gradients in f32, becomes products and softmax in blocks; see {@link AttentionProducts}.
 */
public final class LowerAttention extends GraphPass {

  /**
   * The sizes from which attention is rewritten.
   *
   * @param multiplications below which one simple kernel takes less time than several fast ones
   * @param block the scores of a block, in bytes, unless these make too many blocks
   * @param causalRows the fewest rows of a part of causal attention, whose first parts see few keys
   * @param gradientScores of all heads for which a library may compute gradients at once
   */
  public record Bounds(long multiplications, long block, long causalRows, long gradientScores) {
    static final Bounds DEFAULT =
        new Bounds(1L << 23, 64L << 20, 256, LibraryAttention.MAX_GRADIENT_SCORES);
  }

  public LowerAttention() {
    super("lower_attention", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.mapGraphs(
        own -> new Lowering(own.graph(), Bounds.DEFAULT).run(own.ops(AttentionOps::is)));
  }

  /** {@return the graph with large attention in another form; the same graph if it has none} */
  public static Graph lower(Graph graph, Bounds bounds) {
    return new Lowering(graph, bounds).run(graph.ops().stream());
  }

  private static final class Lowering {
    /**
     * More take longer than anyone waits for, and blocks of them are larger than tensors can be.
     */
    private static final double MAX_SCORES = 1L << 50;

    /** More would not be a tensor any more in a wider type. */
    private static final long MAX_ELEMENTS = 1L << 44;

    private static final ImmutableList<String> OPERANDS =
        ImmutableList.of("query", "key", "value", "out", "grad_out", "grad_out_");

    private final Graph graph;
    private final Bounds bounds;
    private final GraphCopier copier;
    private boolean[] read = new boolean[0];

    Lowering(Graph graph, Bounds bounds) {
      this.graph = graph;
      this.bounds = bounds;
      this.copier = new GraphCopier(graph);
    }

    /**
     * @param candidates all attention, and maybe other ops
     */
    Graph run(Stream<Op> candidates) {
      if (candidates.noneMatch(this::isSlow)) {
        return graph;
      }
      read = new boolean[graph.valueCount()];
      graph.ops().forEach(op -> op.operands().forEach(value -> read[value.id()] = true));
      graph.outputValues().forEach(value -> read[value.id()] = true);
      for (var op : graph.ops()) {
        if (!isSlow(op) || !lower(op)) {
          copier.keep(op);
        }
      }
      var lowered = copier.finish();
      return lowered == graph ? graph : Normalize.removeDeadCode(lowered);
    }

    /** Whether an op is large attention for which there is no fast kernel as it is. */
    private boolean isSlow(Op op) {
      if (!AttentionOps.is(op.def())
          || !op.results().getFirst().isTensor()
          || !AttentionOps.isKnown(op.call())
          || givesGradientOfBias(op)) {
        return false;
      }
      var query = op.call().tensor("query");
      var key = op.call().tensor("key");
      double multiplications = (double) query.numel() * key.size(key.rank() - 2);
      return query.rank() <= 4
          && multiplications >= bounds.multiplications()
          && multiplications / query.size(query.rank() - 1) <= MAX_SCORES
          && op.operands().stream()
              .allMatch(value -> !value.isTensor() || value.tensor().numel() <= MAX_ELEMENTS)
          && op.call().number("dropout_p") == 0
          && !(suitsLibrary(op) && pieces(op).isOne())
          && !suitsGenerated(op);
    }

    /** No library does, and each piece would give a part of the sum. */
    private static boolean givesGradientOfBias(Op op) {
      return AttentionOps.isBackward(op.def())
          && op.results().size() > 3
          && op.results().get(3).isTensor();
    }

    /** Whether our own kernel is the best there is, as cuDNN has none, whatever is changed. */
    private static boolean suitsGenerated(Op op) {
      var call = op.call();
      return !AttentionOps.isBackward(op.def())
          && GeneratedAttention.suits(
              call.tensor("query"), call.tensor("key"), call.tensor("value"))
          && !suitsLibraryWith(op, Optional.empty(), Lowering::inAlignedRows);
    }

    /** {@return whether other ops took the place of this one} */
    private boolean lower(Op op) {
      boolean asItIs = suitsLibrary(op);
      var emitter = emitter(op);
      var pieces = pieces(op);
      boolean suits = asItIs || suitsLibraryWith(op, Optional.empty(), Lowering::inAlignedRows);
      if (suits && pieces.exist()) {
        var args = asItIs ? copier.now(op.args()) : loadable(emitter);
        if (pieces.isOne()) {
          copier.emit(op, op.def(), args);
        } else {
          pieces.emit(args);
        }
        return true;
      }
      return AttentionOps.isBackward(op.def()) ? gradients(emitter) : products(emitter);
    }

    private OpEmitter emitter(Op op) {
      return new OpEmitter(copier, op, Lowering::groupSize);
    }

    private AttentionPieces pieces(Op op) {
      return new AttentionPieces(emitter(op), bounds.gradientScores());
    }

    private static int groupSize(String group) {
      throw new IllegalStateException("attention has no group " + group);
    }

    private static boolean suitsLibrary(Op op) {
      var bias = AttentionOps.bias(op.def()).filter(op.call()::has).map(op.call()::tensor);
      return suitsLibraryWith(op, bias, type -> type);
    }

    /**
     * @param bias in place of the op's own
     * @param as the type of an operand after it was copied for cuDNN, if it has to be
     */
    private static boolean suitsLibraryWith(
        Op op, Optional<TensorType> bias, UnaryOperator<TensorType> as) {
      var call = op.call();
      boolean backward = AttentionOps.isBackward(op.def());
      var others = new ArrayList<TensorType>();
      others.add(as.apply(call.tensor("value")));
      if (backward) {
        others.add(as.apply(call.tensor("out")));
        others.add(as.apply(call.tensor(AttentionOps.gradient(op.def()))));
        op.results().stream().filter(Value::isTensor).forEach(value -> others.add(value.tensor()));
      } else {
        others.add(op.results().getFirst().tensor());
      }
      var logs =
          backward
              ? Optional.of(call.tensor("logsumexp"))
              : op.results().stream()
                  .skip(1)
                  .limit(1)
                  .filter(Value::isTensor)
                  .map(Value::tensor)
                  .filter(type -> type.numel() > 0)
                  .findFirst();
      return LibraryAttention.suits(
          fourDimensional(as.apply(call.tensor("query"))),
          fourDimensional(as.apply(call.tensor("key"))),
          others.stream().map(Lowering::fourDimensional).collect(toImmutableList()),
          bias.map(Lowering::fourDimensional),
          logs,
          AttentionOps.scale(call));
    }

    /** Missing dimensions are 1. */
    private static TensorType fourDimensional(TensorType type) {
      int missing = 4 - type.rank();
      var sizes = new long[] {1, 1, 1, 1};
      var strides = new long[4];
      for (int dim = 0; dim < type.rank(); dim++) {
        sizes[missing + dim] = type.size(dim);
        strides[missing + dim] = type.stride(dim);
      }
      return new TensorType(
          type.dtype(),
          ImmutableLongArray.copyOf(sizes),
          ImmutableLongArray.copyOf(strides),
          type.space());
    }

    private static TensorType inAlignedRows(TensorType type) {
      return LibraryAttention.hasAlignedRows(fourDimensional(type))
          ? type
          : TensorType.contiguous(type.dtype(), type.sizes());
    }

    /** The arguments, with operands that cuDNN loads and a bias that it adds. */
    private ImmutableList<Arg> loadable(OpEmitter emitter) {
      var op = emitter.at();
      var schema = op.def().schema();
      var args = new ArrayList<>(copier.now(op.args()));
      for (var param : OPERANDS) {
        if (schema.hasParam(param)) {
          int index = schema.indexOf(param);
          args.set(index, loadable(emitter, op.call().value(param)));
        }
      }
      var bias = AttentionOps.bias(op.def()).filter(op.call()::has);
      if (bias.isPresent()) {
        var call = new OpCall(op.def(), copier.now(op.args()));
        var changed = new AttentionBias(emitter).forLibrary(call);
        args.set(schema.indexOf(bias.get()), new Arg.Ref(changed));
      }
      return ImmutableList.copyOf(args);
    }

    private Arg loadable(OpEmitter emitter, Value value) {
      var now = new Arg.Ref(copier.now(value));
      var type = inAlignedRows(value.tensor());
      return type.equals(value.tensor())
          ? now
          : new Arg.Ref(emitter.emitAs(value.name() + "_dense", type, "aten::clone", now));
    }

    private boolean products(OpEmitter emitter) {
      var op = emitter.at();
      if (!canFill(op, 2)) {
        return false;
      }
      var products = new AttentionProducts(emitter, bounds);
      boolean wantsLogs =
          op.results().size() > 1
              && op.results().get(1).isTensor()
              && op.results().get(1).tensor().numel() > 0
              && read[op.results().get(1).id()];
      var made = products.forward(wantsLogs);
      products.give(made.out(), op.results().getFirst());
      made.logs().ifPresent(logs -> products.giveLogs(logs, op.results().get(1)));
      fill(emitter, op, wantsLogs ? 2 : 1);
      return true;
    }

    private boolean gradients(OpEmitter emitter) {
      var op = emitter.at();
      var results = op.results();
      if (!canFill(op, 3)) {
        return false;
      }
      var products = new AttentionProducts(emitter, bounds);
      var made = products.backward();
      products.give(made.ofQuery(), results.get(0));
      products.give(made.ofKey(), results.get(1));
      products.give(made.ofValue(), results.get(2));
      fill(emitter, op, 3);
      return true;
    }

    /** Whether no op reads the remaining results, unless they are tensors. */
    private boolean canFill(Op op, int computed) {
      return op.results().stream()
          .skip(computed)
          .allMatch(
              value -> value.isTensor() || !read[value.id()] || value.type() instanceof NoneType);
    }

    /** States of random numbers, and other tensors that nothing wrote. */
    private void fill(OpEmitter emitter, Op op, int computed) {
      op.results().stream()
          .skip(computed)
          .filter(value -> value.isTensor() && read[value.id()])
          .forEach(
              value ->
                  emitter.emitAs(
                      value,
                      "aten::full",
                      Arg.Seq.of(value.tensor().sizes().stream()),
                      new Arg.Int(0),
                      new Arg.Dtype(value.tensor().dtype())));
    }
  }
}
