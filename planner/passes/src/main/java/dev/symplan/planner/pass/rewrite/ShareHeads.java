package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Optional;

/**
 * Gives attention the heads of keys and values once where the graph repeats them for each head of
 * queries: kernels read shared heads themselves. The ops that made the copies are dead then.
 */
public final class ShareHeads extends GraphPass {

  /** Ops that return their operand in another shape or in new memory. */
  private static final ImmutableSet<String> MOVES =
      ImmutableSet.of(
          "aten::clone", "aten::contiguous", "aten::reshape", "aten::view", "aten::_unsafe_view");

  public ShareHeads() {
    super("share_heads", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.mapGraphs(
        own -> own.hasOp(ShareHeads::isForward) ? share(own.graph()) : own.graph());
  }

  private static boolean isForward(OpDef def) {
    return AttentionOps.is(def) && !AttentionOps.isBackward(def);
  }

  /** {@return the graph whose attention shares heads; the same graph if none are repeated} */
  public static Graph share(Graph graph) {
    return new Sharing(graph).run();
  }

  /**
   * Heads that are repeated.
   *
   * @param of the tensor that has a dimension of stride 0
   * @param dim that dimension
   */
  private record Repeated(Value of, int dim) {
    long times() {
      return of.tensor().size(dim);
    }
  }

  private static final class Sharing {
    private final Graph graph;
    private final GraphCopier copier;

    /** By value, the op that gives it; -1 for inputs, and until it is reached. */
    private final int[] makers;

    Sharing(Graph graph) {
      this.graph = graph;
      this.copier = new GraphCopier(graph);
      this.makers = new int[graph.valueCount()];
      Arrays.fill(makers, -1);
    }

    Graph run() {
      int lastWrite = -1;
      for (int i = 0; i < graph.ops().size(); i++) {
        var op = graph.ops().get(i);
        var args =
            isForward(op.def()) ? shared(op, lastWrite) : Optional.<ImmutableList<Arg>>empty();
        if (args.isPresent()) {
          copier.emit(op, op.def(), args.get());
        } else {
          copier.keep(op);
        }
        int at = i;
        op.results().forEach(result -> makers[result.id()] = at);
        lastWrite = writes(op) ? i : lastWrite;
      }
      var shared = copier.finish();
      return shared == graph ? graph : Normalize.removeDeadCode(shared);
    }

    private static boolean writes(Op op) {
      return op.def().rule().isEmpty() || op.def().hasEffect();
    }

    /** {@return the arguments with each head once; empty if heads are not repeated} */
    private Optional<ImmutableList<Arg>> shared(Op op, int lastWrite) {
      var query = op.call().tensor("query");
      var key = repeated(op.call().value("key"), lastWrite);
      var value = repeated(op.call().value("value"), lastWrite);
      if (query.rank() != 4
          || key.isEmpty()
          || value.isEmpty()
          || key.get().times() != value.get().times()
          || query.size(1) != op.call().tensor("key").size(1)) {
        return Optional.empty();
      }
      var schema = op.def().schema();
      var args = new ArrayList<>(copier.now(op.args()));
      args.set(schema.indexOf("key"), once(op, key.get()));
      args.set(schema.indexOf("value"), once(op, value.get()));
      if (schema.hasParam("enable_gqa")) {
        args.set(schema.indexOf("enable_gqa"), new Arg.Bool(true));
      }
      return Optional.of(ImmutableList.copyOf(args)).filter(given -> givesTheSame(op, given));
    }

    private static boolean givesTheSame(Op op, ImmutableList<Arg> args) {
      try {
        return op.def().infer(args).equals(op.def().infer(op.args()));
      } catch (OpTypeException e) {
        return false;
      }
    }

    /** Follows copies back, unless something may have been written since. */
    private Optional<Repeated> repeated(Value heads, int lastWrite) {
      var type = heads.tensor();
      if (type.rank() != 4) {
        return Optional.empty();
      }
      if (type.size(1) > 1 && type.stride(1) == 0) {
        return Optional.of(new Repeated(heads, 1));
      }
      var value = heads;
      while (true) {
        int maker = makers[value.id()];
        if (maker <= lastWrite) {
          return Optional.empty();
        }
        var op = graph.ops().get(maker);
        if (!MOVES.contains(op.def().name().toString())) {
          return Optional.empty();
        }
        value = op.call().value("self");
        if (isRepeated(value.tensor(), type)) {
          return Optional.of(new Repeated(value, 2));
        }
        if (!value.tensor().sizes().equals(type.sizes()) && !hasGroups(value.tensor(), type)) {
          return Optional.empty();
        }
      }
    }

    /** Whether it is [batch, shared heads, group, rows, features] of [batch, heads, ...]. */
    private static boolean hasGroups(TensorType type, TensorType heads) {
      return type.rank() == 5
          && type.size(0) == heads.size(0)
          && type.size(1) * type.size(2) == heads.size(1)
          && type.size(3) == heads.size(2)
          && type.size(4) == heads.size(3);
    }

    private static boolean isRepeated(TensorType type, TensorType heads) {
      return hasGroups(type, heads) && type.size(2) > 1 && type.stride(2) == 0;
    }

    private Arg once(Op op, Repeated heads) {
      var emitter = new OpEmitter(copier, op, ShareHeads::groupSize);
      var of = new Arg.Ref(copier.now(heads.of()));
      var dim = new Arg.Int(heads.dim());
      var zero = new Arg.Int(0);
      var target = Target.of(heads.of().name() + "_once");
      return new Arg.Ref(
          heads.of().tensor().rank() == 4
              ? emitter.emit(target, "aten::slice.Tensor", of, dim, zero, new Arg.Int(1))
              : emitter.emit(target, "aten::select.int", of, dim, zero));
    }
  }

  private static int groupSize(String group) {
    throw new IllegalStateException("attention has no group " + group);
  }
}
