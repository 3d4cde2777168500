package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Gathers elements before elementwise ops, not after them: of the logits, a loss needs one for each
 * token, and so the logarithms of all others need not be computed, nor have memory. Each element is
 * computed as before, from the same elements.
 */
public final class GatherFirst extends GraphPass {
  private static final OpDef GATHER = BuiltinOps.registry().get("aten::gather");
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");

  /** So many ops, one of the other. */
  private static final int DEEPEST = 32;

  public GatherFirst() {
    super("gather_first", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.mapGraphs(GatherFirst::run);
  }

  private static Graph run(Analyses own) {
    return own.hasOp(def -> def == GATHER) ? new Search(own).run() : own.graph();
  }

  /** A part of the elementwise computation of gathered elements. */
  private sealed interface Picked {

    /** Elements of a tensor. */
    record Elements(Value value) implements Picked {}

    /** A tensor that has the same for each index, and is read as it is. */
    record Whole(Value value) implements Picked {}

    /**
     * The result of an op on elements.
     *
     * @param index the position of the op
     * @param operands the substitutes of its operands
     */
    record Made(int index, Op op, ImmutableList<Picked> operands) implements Picked {}
  }

  private static final class Search extends GraphSearch {
    private final GraphCopier copier;

    Search(Analyses own) {
      super(own);
      this.copier = new GraphCopier(graph);
    }

    Graph run() {
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        var made = op.def() == GATHER ? made(op, i) : Optional.<Picked.Made>empty();
        if (made.isEmpty() || !emit(made.get(), op)) {
          copier.keep(op);
        }
      }
      return Normalize.removeDeadCode(copier.finish());
    }

    /** {@return the ops that a gather can come before, if nothing else reads what they make} */
    private Optional<Picked.Made> made(Op gather, int index) {
      var self = gather.args().getFirst().operands().getFirst();
      var picks = ((Arg.Ref) gather.arg("index")).value().tensor();
      var sizes = self.tensor().sizes();
      if (sizes.length() == 0
          || picks.rank() != sizes.length()
          || picks.numel() >= self.tensor().numel()
          || flow.onlyReader(aliases.id(self)) != index) {
        return Optional.empty();
      }
      int dim = OpCall.wrapDim(((Arg.Int) gather.arg("dim")).value(), sizes.length(), "dim");
      for (int i = 0; i < sizes.length(); i++) {
        if (i != dim && picks.size(i) != sizes.get(i)) {
          return Optional.empty();
        }
      }
      return picked(self, sizes, dim, DEEPEST) instanceof Picked.Made made
              && !flow.mayWrite(first(made), index)
          ? Optional.of(made)
          : Optional.empty();
    }

    private static int first(Picked.Made made) {
      int first = made.index();
      for (var operand : made.operands()) {
        if (operand instanceof Picked.Made before) {
          first = Math.min(first, first(before));
        }
      }
      return first;
    }

    /**
     * {@return how elements of a tensor come about}
     *
     * @param sizes with which it is seen
     */
    private Picked picked(Value value, ImmutableLongArray sizes, int dim, int deepest) {
      var seen = value;
      var base = flow.base(seen);
      while (base.isPresent() && isWhole(seen) && isWhole(base.get())) {
        seen = base.get();
        base = flow.base(seen);
      }
      int maker = flow.maker(seen);
      if (maker == DataFlow.NONE || deepest == 0 || !isElementwise(ops.get(maker))) {
        return new Picked.Elements(value);
      }
      var operands = ImmutableList.<Picked>builder();
      for (var operand : ops.get(maker).operands()) {
        if (operand.tensor().sizes().equals(seen.tensor().sizes())
            && (sizes.equals(seen.tensor().sizes()) || operand.tensor().isContiguous())) {
          operands.add(picked(operand, sizes, dim, deepest - 1));
        } else if (operand.tensor().rank() == 0
            || (sizes.equals(seen.tensor().sizes()) && isSame(operand.tensor(), sizes, dim))) {
          operands.add(new Picked.Whole(operand));
        } else {
          return new Picked.Elements(value);
        }
      }
      var made = new Picked.Made(maker, ops.get(maker), operands.build());
      // The tensors that are read instead must not keep more memory.
      long bytes = read(made).map(aliases::of).distinct().mapToLong(Aliases.Storage::bytes).sum();
      return bytes <= seen.tensor().bytes() ? made : new Picked.Elements(value);
    }

    /** {@return the tensors of which elements are read} */
    private static Stream<Value> read(Picked picked) {
      return switch (picked) {
        case Picked.Elements(var value) -> Stream.of(value);
        case Picked.Whole _ -> Stream.of();
        case Picked.Made made -> made.operands().stream().flatMap(Search::read);
      };
    }

    /** Whether a tensor is all of its storage, one element after the other. */
    private boolean isWhole(Value value) {
      return aliases.isWhole(value) && value.tensor().isContiguous();
    }

    private boolean isElementwise(Op op) {
      return op.results().size() == 1
          && op.result().isTensor()
          && op.def().has(OpTrait.ELEMENTWISE)
          && op.operands().stream().allMatch(Value::isTensor)
          && op.def().rule().isPresent()
          && !op.def().hasEffect()
          && !op.def().schema().mutates()
          && aliases.defines(op.result());
    }

    /** Whether a tensor has one size in a dimension, or none, and others as if it were repeated. */
    private static boolean isSame(TensorType type, ImmutableLongArray sizes, int dim) {
      int more = sizes.length() - type.rank();
      for (int i = 0; i < type.rank(); i++) {
        if (type.size(i) != 1 && (i + more == dim || type.size(i) != sizes.get(i + more))) {
          return false;
        }
      }
      return more >= 0;
    }

    private boolean emit(Picked.Made made, Op gather) {
      var args = args(made, gather);
      var type = type(made.op(), args);
      if (type.dtype() != gather.result().tensor().dtype()
          || !type.sizes().equals(gather.result().tensor().sizes())) {
        return false;
      }
      copier.emit(gather.results(), made.op().def(), args, gather);
      return true;
    }

    private ImmutableList<Arg> args(Picked.Made made, Op gather) {
      Map<Integer, Value> operands = new HashMap<>();
      var values = made.op().operands();
      for (int i = 0; i < values.size(); i++) {
        operands.put(values.get(i).id(), emit(made.operands().get(i), gather));
      }
      return made.op().args().stream()
          .map(arg -> arg.map(value -> operands.getOrDefault(value.id(), value)))
          .collect(toImmutableList());
    }

    private Value emit(Picked picked, Op gather) {
      return switch (picked) {
        case Picked.Whole(var value) -> copier.now(value);
        case Picked.Elements(var value) -> gathered(copier.now(value), gather);
        case Picked.Made made -> {
          var args = args(made, gather);
          yield copier.insert(
              made.op().def(),
              args,
              made.op().result().name() + "_picked",
              type(made.op(), args),
              gather.span());
        }
      };
    }

    private Value gathered(Value value, Op gather) {
      var sizes = gather.args().getFirst().operands().getFirst().tensor().sizes();
      var name = value.name() + "_picked";
      var dtype = value.tensor().dtype();
      var seen =
          value.tensor().sizes().equals(sizes)
              ? value
              : copier.insert(
                  VIEW,
                  ImmutableList.of(new Arg.Ref(value), Arg.Seq.of(sizes.stream())),
                  name,
                  TensorType.contiguous(dtype, sizes),
                  gather.span());
      var args =
          gather.def().schema().params().stream()
              .map(
                  param ->
                      param.name().equals("self")
                          ? new Arg.Ref(seen)
                          : copier.now(gather.arg(param.name())))
              .collect(toImmutableList());
      var type = TensorType.contiguous(dtype, gather.result().tensor().sizes());
      return copier.insert(GATHER, args, name, type, gather.span());
    }

    private static TensorType type(Op op, ImmutableList<Arg> args) {
      return (TensorType) op.def().infer(args).orElseThrow().getFirst().type();
    }
  }
}
