package dev.symplan.planner.pass.rewrite;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.IntLists;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Reshapes tensors before elementwise ops, not after them: logits are converted as {@code [tokens,
 * vocabulary]}, as the loss reads them, though the model gives {@code [batch, tokens, vocabulary]}.
 * Ops of one shape can run as one kernel.
 *
 * <p>An op changes its shape if all that reads its result is a reshape to the same sizes, or an
 * elementwise op that changes to these. What it reads is reshaped instead, unless a kernel by rows
 * made it, which it may belong to. A scalar goes with tensors of any shape, so it stays one.
 */
public final class ReshapeFirst extends GraphPass {
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");

  public ReshapeFirst() {
    super("reshape_first", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return context.options().fusion() ? state.mapGraphs(own -> new Search(own).run()) : state;
  }

  private static final class Search extends GraphSearch {
    private final GraphCopier copier;

    /** By value, the ops that take it. */
    private final Supplier<IntLists> readers = Suppliers.memoize(this::readers);

    private final BitSet returned = new BitSet();

    /** The ops that show a tensor in the shape that it has, as models do where ranks part. */
    private final BitSet same = new BitSet();

    /** By op, the sizes that its result gets. */
    private final Map<Integer, ImmutableLongArray> changed = new HashMap<>();

    Search(Analyses own) {
      super(own);
      this.copier = new GraphCopier(graph);
      graph.outputValues().forEach(value -> returned.set(value.id()));
      for (int op : Parallel.where(ops.size(), this::isSame)) {
        same.set(op);
      }
    }

    private IntLists readers() {
      return IntLists.Builder.of(
              ops.size(),
              (op, reads) -> {
                if (!same.get(op)) {
                  for (var operand : ops.get(op).operands()) {
                    reads.add(same(operand).id(), op);
                  }
                }
              })
          .build(graph.valueCount());
    }

    Graph run() {
      if (Parallel.where(ops.size(), this::reshapesElementwise).length == 0) {
        return graph;
      }
      var elementwise = Parallel.where(ops.size(), op -> isElementwise(ops.get(op)));
      for (int i = elementwise.length - 1; i >= 0; i--) {
        int index = elementwise[i];
        sizes(ops.get(index)).ifPresent(sizes -> changed.put(index, sizes));
      }
      // An op that stays keeps those before and behind it.
      while (changed
          .entrySet()
          .removeIf(entry -> !fits(ops.get(entry.getKey()), entry.getValue()))) {
        // Once more.
      }
      if (changed.isEmpty()) {
        return graph;
      }
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        if (changed.containsKey(i)) {
          emit(op, changed.get(i));
        } else if (!replaces(op)) {
          copier.keep(op);
        }
      }
      return Normalize.removeDeadCode(copier.finish());
    }

    private boolean isElementwise(Op op) {
      return op.def().has(OpTrait.ELEMENTWISE)
          && op.def().rule().isPresent()
          && !op.def().hasEffect()
          && op.results().size() == 1
          && op.result().isTensor()
          && aliases.defines(op.result())
          && op.result().tensor().rank() > 0
          && op.result().tensor().isContiguous()
          && !returned.get(op.result().id())
          && op.operands().stream()
              .allMatch(
                  value ->
                      value.isTensor()
                          && (value.tensor().rank() == 0
                              || value.tensor().isContiguous()
                                  && value.tensor().sizes().equals(op.result().tensor().sizes())));
    }

    /** {@return the sizes with which all that reads an op's result sees it, if they are others} */
    private Optional<ImmutableLongArray> sizes(Op op) {
      var seen = new HashSet<ImmutableLongArray>();
      int value = op.result().id();
      for (int i = 0; i < readers.get().size(value); i++) {
        int reader = readers.get().get(value, i);
        if (isReshape(reader, op.result())) {
          seen.add(ops.get(reader).result().tensor().sizes());
        } else if (changed.containsKey(reader)) {
          seen.add(changed.get(reader));
        } else {
          return Optional.empty();
        }
      }
      return seen.size() == 1
          ? Optional.of(seen.iterator().next())
              .filter(sizes -> !sizes.isEmpty() && !sizes.equals(op.result().tensor().sizes()))
          : Optional.empty();
    }

    /** Whether an op only shows all of a tensor in another shape, row by row. */
    private boolean isReshape(int index, Value value) {
      return shownBy(index).map(this::same).filter(value::equals).isPresent();
    }

    /** Whether an op shows what an elementwise op makes in other sizes: without one, all stays. */
    private boolean reshapesElementwise(int index) {
      var shown = shownBy(index).map(this::same);
      return shown.isPresent()
          && flow.maker(shown.get()) >= 0
          && !shown.get().tensor().sizes().equals(ops.get(index).result().tensor().sizes())
          && isElementwise(ops.get(flow.maker(shown.get())));
    }

    /** {@return the tensor of which an op shows all, row by row} */
    private Optional<Value> shownBy(int index) {
      var op = ops.get(index);
      return aliases.isView(index)
              && op.results().size() == 1
              && isWhole(op.result())
              && !returned.get(op.result().id())
          ? flow.base(op.result())
              .filter(base -> base.tensor().dtype() == op.result().tensor().dtype())
          : Optional.empty();
    }

    private boolean isSame(int index) {
      return shownBy(index)
          .filter(this::isWhole)
          .filter(base -> base.tensor().sizes().equals(ops.get(index).result().tensor().sizes()))
          .isPresent();
    }

    /** {@return the tensor of which a value only shows the same shape, and else the value} */
    private Value same(Value value) {
      var shown = value;
      while (flow.maker(shown) >= 0 && same.get(flow.maker(shown))) {
        shown = flow.base(shown).orElseThrow();
      }
      return shown;
    }

    private boolean isWhole(Value value) {
      return aliases.isWhole(value) && value.tensor().isContiguous();
    }

    private boolean fits(Op op, ImmutableLongArray sizes) {
      return sizes(op).filter(sizes::equals).isPresent()
          && op.operands().stream()
              .allMatch(
                  value ->
                      value.tensor().rank() == 0
                          || sizes.equals(changed.get(flow.maker(same(value))))
                          || original(value, sizes).isPresent()
                          || isMadeAlone(value));
    }

    /** {@return the tensor with some sizes, and keeping them, that a value shows in others} */
    private Optional<Value> original(Value value, ImmutableLongArray sizes) {
      var base = Optional.of(value).filter(this::isWhole).flatMap(flow::base);
      while (base.isPresent() && !base.get().tensor().sizes().equals(sizes)) {
        base = base.filter(this::isWhole).flatMap(flow::base);
      }
      return base.filter(this::isWhole)
          .filter(found -> !changed.containsKey(flow.maker(same(found))))
          .filter(found -> found.tensor().dtype() == value.tensor().dtype());
    }

    /** Whether no kernel by rows, and no collective, makes a tensor. */
    private boolean isMadeAlone(Value value) {
      if (!isWhole(value)) {
        return false;
      }
      int maker = aliases.of(value).def();
      return maker < 0
          || !ops.get(maker).def().has(OpTrait.ELEMENTWISE)
              && Rows.of(ops.get(maker)) == 0
              && ops.get(maker).collective().isEmpty();
    }

    private void emit(Op op, ImmutableLongArray sizes) {
      Map<Integer, Value> operands = new HashMap<>();
      for (var value : op.operands()) {
        operands.put(value.id(), reshaped(value, sizes, op));
      }
      var args =
          op.args().stream()
              .map(arg -> arg.map(value -> operands.get(value.id())))
              .collect(ImmutableList.toImmutableList());
      copier.emit(op, op.def(), args, ImmutableList.of(typed(op.result(), sizes)));
    }

    private Value reshaped(Value value, ImmutableLongArray sizes, Op op) {
      if (value.tensor().rank() == 0) {
        return copier.now(value);
      }
      if (sizes.equals(changed.get(flow.maker(same(value))))) {
        return copier.now(same(value));
      }
      var original = original(value, sizes);
      return original.isPresent()
          ? copier.now(original.get())
          : copier.insert(
              VIEW,
              ImmutableList.of(new Arg.Ref(copier.now(value)), Arg.Seq.of(sizes.stream())),
              value.name() + "_reshaped",
              typed(value, sizes),
              op.span());
    }

    private static TensorType typed(Value value, ImmutableLongArray sizes) {
      return TensorType.contiguous(value.tensor().dtype(), sizes);
    }

    /** Whether an op reshapes what has these sizes already. */
    private boolean replaces(Op op) {
      var value =
          op.results().size() == 1
              ? flow.base(op.result()).map(this::same)
              : Optional.<Value>empty();
      if (value.isEmpty() || !changed.containsKey(flow.maker(value.get()))) {
        return false;
      }
      copier.replace(op.result(), copier.now(value.get()));
      return true;
    }
  }
}
