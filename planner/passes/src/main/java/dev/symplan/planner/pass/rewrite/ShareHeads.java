package dev.symplan.planner.pass.rewrite;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.rewrite.HeadSums.HeadSum;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import dev.symplan.planner.pass.rewrite.RepeatedHeads.Repeated;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Gives attention the heads of keys and values once where the graph repeats them for each head of
 * queries: kernels read shared heads themselves. The ops that made the copies are dead then.
 *
 * <p>Gradients of the copies become those of the heads where the graph does nothing but add them
 * up. The op then adds them up itself, before it rounds.
 */
public final class ShareHeads extends GraphPass {

  public ShareHeads() {
    super("share_heads", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.mapGraphs(
        own ->
            own.hasOp(AttentionOps::is)
                ? new Sharing(own.graph(), own::aliases).run()
                : own.graph());
  }

  /** {@return the graph whose attention shares heads; the same graph if none are repeated} */
  public static Graph share(Graph graph) {
    return new Sharing(graph, Suppliers.memoize(() -> Aliases.of(graph))).run();
  }

  private static final class Sharing {
    /** The results that are gradients of keys and of values. */
    private static final ImmutableList<Integer> OF_HEADS = ImmutableList.of(1, 2);

    private final Graph graph;
    private final Supplier<Aliases> aliases;
    private final GraphCopier copier;
    private final RepeatedHeads heads;
    private final Supplier<HeadSums> sums;

    /** By op that adds up gradients of copies, what is that sum now. */
    private final Map<Integer, Value> summed = new HashMap<>();

    /** The ops between gradients of copies and their sums. */
    private final BitSet dropped = new BitSet();

    Sharing(Graph graph, Supplier<Aliases> aliases) {
      this.graph = graph;
      this.aliases = aliases;
      this.copier = new GraphCopier(graph);
      this.heads = new RepeatedHeads(graph, aliases);
      this.sums = Suppliers.memoize(() -> new HeadSums(graph));
    }

    Graph run() {
      for (int i = 0; i < graph.ops().size(); i++) {
        var op = graph.ops().get(i);
        if (summed.get(i) instanceof Value gradient) {
          give(gradient, op);
        } else if (!dropped.get(i) && !(AttentionOps.is(op.def()) && share(op))) {
          copier.keep(op);
        }
        heads.visit(i);
      }
      var shared = copier.finish();
      return shared == graph ? graph : Normalize.removeDeadCode(shared);
    }

    /** {@return whether the op reads each head once now} */
    private boolean share(Op op) {
      var query = op.call().tensor("query");
      var key = heads.of(op.call().value("key"));
      var value = heads.of(op.call().value("value"));
      if (query.rank() != 4
          || key.isEmpty()
          || value.isEmpty()
          || key.get().times() != value.get().times()
          || query.size(1) != op.call().tensor("key").size(1)) {
        return false;
      }
      return AttentionOps.isBackward(op.def())
          ? shareGradients(op, key.get(), value.get())
          : shareForward(op, key.get(), value.get());
    }

    private boolean shareForward(Op op, Repeated key, Repeated value) {
      var args = args(op, key, value);
      boolean same = inferred(op, args).filter(op.infer()::equals).isPresent();
      if (same) {
        copier.emit(op, op.def(), args);
      }
      return same;
    }

    private boolean shareGradients(Op op, Repeated key, Repeated value) {
      if (keepsMore(op, key, value)) {
        return false;
      }
      var found = new HashMap<Integer, HeadSum>();
      for (int i : OF_HEADS) {
        var gradient = op.results().get(i);
        if (!sums.get().isUnread(gradient)) {
          var sum = sums.get().of(gradient, key.times());
          if (sum.isEmpty()) {
            return false;
          }
          found.put(i, sum.get());
        }
      }
      var args = args(op, key, value);
      var types = inferred(op, args).flatMap(results -> types(op, results, found));
      if (types.isEmpty()) {
        return false;
      }
      var shared = copier.emit(op, op.def(), args, types.get());
      found.forEach(
          (i, sum) -> {
            summed.put(sum.op(), shared.results().get(i));
            sum.moves().forEach(dropped::set);
          });
      return true;
    }

    /**
     * Whether memory for what the heads are a part of, which is then read later than before, is
     * more than for the copies.
     */
    private boolean keepsMore(Op op, Repeated key, Repeated value) {
      long copies = op.call().tensor("key").bytes() + op.call().tensor("value").bytes();
      return Stream.of(key, value)
              .map(own -> aliases.get().of(own.of()))
              .distinct()
              .mapToLong(Aliases.Storage::bytes)
              .sum()
          > copies;
    }

    /** The types of the results, those of gradients of heads as the sums lie in memory. */
    private static Optional<ImmutableList<Type>> types(
        Op op, List<OpResult> inferred, Map<Integer, HeadSum> sums) {
      var types = ImmutableList.<Type>builder();
      for (int i = 0; i < inferred.size(); i++) {
        var old = op.results().get(i);
        Type type = old.type();
        if (sums.get(i) instanceof HeadSum sum) {
          type = sum.type();
        } else if (OF_HEADS.contains(i) && old.isTensor()) {
          type = ((TensorType) inferred.get(i).type()).withSpace(old.tensor().space());
        }
        if (old.isTensor() && !inferred.get(i).allows(type)) {
          return Optional.empty();
        }
        types.add(type);
      }
      return Optional.of(types.build());
    }

    /** Has later ops read a gradient of shared heads where they read the sum of those of copies. */
    private void give(Value gradient, Op sum) {
      var emitter = emitter(sum);
      var ref = new Arg.Ref(gradient);
      int missing = sum.result().tensor().rank() - gradient.tensor().rank();
      if (missing == 0) {
        emitter.emitAs(sum.result(), "aten::alias", ref);
      } else if (missing > 0) {
        emitter.emitAs(sum.result(), "aten::unsqueeze", ref, new Arg.Int(2));
      } else {
        emitter.emitAs(sum.result(), "aten::squeeze.dim", ref, new Arg.Int(1));
      }
    }

    private static Optional<ImmutableList<OpResult>> inferred(Op op, ImmutableList<Arg> args) {
      try {
        return op.def().infer(args);
      } catch (OpTypeException e) {
        return Optional.empty();
      }
    }

    /** The arguments with each head once. */
    private ImmutableList<Arg> args(Op op, Repeated key, Repeated value) {
      var schema = op.def().schema();
      var args = new ArrayList<>(copier.now(op.args()));
      args.set(schema.indexOf("key"), once(op, key));
      args.set(schema.indexOf("value"), once(op, value));
      if (schema.hasParam("enable_gqa")) {
        args.set(schema.indexOf("enable_gqa"), new Arg.Bool(true));
      }
      return ImmutableList.copyOf(args);
    }

    private Arg once(Op op, Repeated heads) {
      var emitter = emitter(op);
      var of = new Arg.Ref(copier.now(heads.of()));
      var dim = new Arg.Int(heads.dim());
      var zero = new Arg.Int(0);
      var target = Target.of(heads.of().name() + "_once");
      var selected = emitter.emit(target, "aten::select.int", of, dim, zero);
      // A slice would have the stride 0 of the copies.
      return new Arg.Ref(
          heads.of().tensor().rank() == 4
              ? emitter.emit(target, "aten::unsqueeze", new Arg.Ref(selected), dim)
              : selected);
    }

    private OpEmitter emitter(Op at) {
      return new OpEmitter(copier, at, ShareHeads::groupSize);
    }
  }

  private static int groupSize(String group) {
    throw new IllegalStateException("attention has no group " + group);
  }
}
