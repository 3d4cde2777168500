package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
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
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Moves a conversion to a larger type down to the one op that reads it row by row through a view,
 * and the view before it: both then run as one kernel, and what is converted needs no memory. A
 * model computes its loss like that, from logits of half the size.
 */
public final class SinkConversions extends GraphPass {
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");

  public SinkConversions() {
    super("sink_conversions", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    if (!context.options().fusion()) {
      return state;
    }
    return state.mapGraphs(own -> new Sinking(own).run());
  }

  /**
   * A conversion that moves.
   *
   * @param op the conversion
   * @param read the view of its result that is read
   */
  private record Move(Op op, Value read) {}

  private static final class Sinking extends GraphSearch {

    Sinking(Analyses own) {
      super(own);
    }

    Graph run() {
      Map<Integer, Move> moves = new HashMap<>();
      for (int i : Parallel.where(ops.size(), op -> isConversion(ops.get(op)))) {
        int reader = flow.onlyReader(aliases.id(ops.get(i).result()));
        move(i, reader).ifPresent(move -> moves.put(reader, move));
      }
      return moves.isEmpty() ? graph : moved(moves);
    }

    private Graph moved(Map<Integer, Move> moves) {
      var copier = new GraphCopier(graph);
      var gone = moves.values().stream().map(move -> aliases.id(move.op().result())).toList();
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        if (moves.get(i) instanceof Move move) {
          convert(move, copier);
        }
        boolean isGone = op.results().stream().anyMatch(value -> gone.contains(aliases.id(value)));
        if (!isGone) {
          copier.keep(op);
        }
      }
      return copier.finish();
    }

    private static void convert(Move move, GraphCopier copier) {
      var op = move.op();
      var from = copier.now(op.operands().getFirst());
      var sizes = move.read().tensor().sizes();
      var seen =
          copier.insert(
              VIEW,
              ImmutableList.of(new Arg.Ref(from), Arg.Seq.of(sizes.stream())),
              from.name() + "_rows",
              TensorType.contiguous(from.tensor().dtype(), sizes),
              op.span());
      var args =
          op.args().stream()
              .map(arg -> arg instanceof Arg.Ref ? new Arg.Ref(seen) : arg)
              .collect(toImmutableList());
      copier.emit(ImmutableList.of(move.read()), op.def(), args, op);
    }

    private boolean isConversion(Op op) {
      return op.operands().size() == 1
          && op.results().size() == 1
          && op.result().isTensor()
          && op.def().has(OpTrait.ELEMENTWISE)
          && PureOps.isPure(op)
          && op.result().tensor().isContiguous()
          && op.operands().getFirst().tensor().isContiguous()
          && op.operands().getFirst().tensor().sizes().equals(op.result().tensor().sizes())
          && aliases.of(op.operands().getFirst()).bytes() < op.result().tensor().bytes()
          && aliases.defines(op.result());
    }

    private Optional<Move> move(int index, int reader) {
      if (reader == DataFlow.NONE
          || ops.get(reader).def().has(OpTrait.ELEMENTWISE)
          || Rows.of(ops.get(reader)) == 0
          || !ops.subList(index, reader).stream().allMatch(PureOps::isPure)) {
        return Optional.empty();
      }
      int storage = aliases.id(ops.get(index).result());
      var read =
          ops.get(reader).operands().stream()
              .filter(value -> aliases.id(value) == storage)
              .toList();
      var value = read.getFirst();
      return read.size() == 1
              && !value.equals(ops.get(index).result())
              && aliases.isWhole(value)
              && value.tensor().isContiguous()
              && value.tensor().dtype() == ops.get(index).result().tensor().dtype()
          ? Optional.of(new Move(ops.get(index), value))
          : Optional.empty();
    }
  }
}
