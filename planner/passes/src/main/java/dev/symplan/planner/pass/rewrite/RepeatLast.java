package dev.symplan.planner.pass.rewrite;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.IntLists;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Lets elementwise ops repeat elements themselves, which they do anyway where operands have fewer
 * of them than results. The gradient of a norm takes a sum of each row and expands it to the whole
 * row, divides that by the length, and multiplies it by the row. Divided before, the sums are a
 * tensor without views, so all of it is one kernel.
 *
 * <p>An op reads what an {@code expand} shows instead of the view, if its result stays what it is.
 * An op of which that makes the result smaller is done on the few elements, if only elementwise ops
 * read it that have the right result then, too.
 */
public final class RepeatLast extends GraphPass {
  private static final OpDef EXPAND = BuiltinOps.registry().get("aten::expand");
  private static final OpDef EXPAND_AS = BuiltinOps.registry().get("aten::expand_as");

  public RepeatLast() {
    super("repeat_last", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return context.options().fusion()
        ? state.mapGraphs(
            own -> own.hasOp(RepeatLast::expands) ? new Search(own).run() : own.graph())
        : state;
  }

  private static boolean expands(OpDef def) {
    return def == EXPAND || def == EXPAND_AS;
  }

  private static final class Search extends GraphSearch {
    private final BitSet returned = new BitSet();

    /** By value, the ops that take it. */
    private final Supplier<IntLists> readers = Suppliers.memoize(this::readers);

    /** By id, what a value repeats, with the type that it gets; null where that is nothing else. */
    private final @Nullable Value[] few;

    /** Ops whose results must stay as they are. */
    private final BitSet kept = new BitSet();

    /** Ops that read few elements for many. */
    private final BitSet taking = new BitSet();

    Search(Analyses own) {
      super(own);
      this.few = new @Nullable Value[graph.valueCount()];
      graph.outputValues().forEach(value -> returned.set(value.id()));
    }

    private IntLists readers() {
      return IntLists.Builder.of(
              ops.size(),
              (op, reads) -> {
                for (var operand : ops.get(op).operands()) {
                  reads.add(operand.id(), op);
                }
              })
          .build(graph.valueCount());
    }

    Graph run() {
      do {
        follow();
      } while (keepMany());
      return taking.isEmpty() ? graph : rewritten();
    }

    /** {@return what a value repeats; the value if that is nothing else} */
    private Value few(Value value) {
      @Nullable Value own = few[value.id()];
      return own == null ? value : own;
    }

    private void follow() {
      Arrays.fill(few, null);
      taking.clear();
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        if (expands(op.def())) {
          shown(op).ifPresent(value -> few[op.result().id()] = value);
        } else if (readsMany(op) && PureOps.isElementwise(op, aliases)) {
          take(i);
        }
      }
    }

    private boolean readsMany(Op op) {
      for (var operand : op.operands()) {
        if (few[operand.id()] != null) {
          return true;
        }
      }
      return false;
    }

    /** {@return the tensor of at least one dimension whose elements an op shows repeatedly} */
    private Optional<Value> shown(Op op) {
      return flow.base(op.result())
          // Other types of results go with a tensor that is only a number.
          .filter(base -> base.isTensor() && base.tensor().rank() > 0)
          .filter(base -> base.tensor().dtype() == op.result().tensor().dtype())
          .filter(base -> isRepeatedIn(base.tensor(), op.result().tensor()))
          .map(this::few);
    }

    private static boolean isRepeatedIn(TensorType type, TensorType whole) {
      return type.broadcastsTo(whole) && 0 < type.numel() && type.numel() < whole.numel();
    }

    private void take(int index) {
      var op = ops.get(index);
      var type = type(op);
      var whole = op.result().tensor();
      if (type.filter(whole::equals).isPresent()) {
        taking.set(index);
      } else if (!kept.get(index)
          && type.filter(own -> own.rank() > 0 && isRepeatedIn(own, whole)).isPresent()) {
        taking.set(index);
        var made = op.result();
        few[made.id()] =
            new Value(made.id(), made.name(), type.get(), made.span(), made.annotated());
      }
    }

    /** {@return the type of the result for few elements, if it has the same elements otherwise} */
    private Optional<TensorType> type(Op op) {
      try {
        return op.def()
            .infer(args(op, this::few))
            .filter(results -> results.size() == 1 && results.getFirst().view().isEmpty())
            .flatMap(results -> tensor(results.getFirst().type()))
            .map(type -> type.withSpace(op.result().tensor().space()))
            .filter(type -> type.dtype() == op.result().tensor().dtype());
      } catch (OpTypeException e) {
        return Optional.empty();
      }
    }

    private static Optional<TensorType> tensor(Object type) {
      return type instanceof TensorType own ? Optional.of(own) : Optional.empty();
    }

    private static ImmutableList<Arg> args(Op op, UnaryOperator<Value> operands) {
      return op.args().stream()
          .map(arg -> arg.map(operands))
          .collect(ImmutableList.toImmutableList());
    }

    /** Leaves results as they are that an op reads as they are; whether there are any. */
    private boolean keepMany() {
      boolean changed = false;
      for (int i = ops.size() - 1; i >= 0; i--) {
        var op = ops.get(i);
        if (taking.get(i) && isFew(op) && !isReadAsFew(op.result())) {
          kept.set(i);
          taking.clear(i);
          changed = true;
        }
      }
      return changed;
    }

    private boolean isFew(Op op) {
      return few[op.result().id()] != null;
    }

    private boolean isReadAsFew(Value value) {
      if (returned.get(value.id())) {
        return false;
      }
      for (int r = 0; r < readers.get().size(value.id()); r++) {
        if (!taking.get(readers.get().get(value.id(), r))) {
          return false;
        }
      }
      return true;
    }

    private Graph rewritten() {
      var copier = new GraphCopier(graph);
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        if (!taking.get(i)) {
          copier.keep(op);
          continue;
        }
        var args = args(op, value -> copier.now(few(value)));
        copier.emit(op, op.def(), args, ImmutableList.of(few(op.result()).type()));
      }
      return Normalize.removeDeadCode(copier.finish());
    }
  }
}
