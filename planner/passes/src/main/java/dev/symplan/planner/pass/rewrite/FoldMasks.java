package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.ConstantElements;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.Runs;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Evaluates masks of attention that depend on no input: one that hides nothing goes, and one that
 * hides what is above the diagonal becomes {@code is_causal}, for which libraries have faster
 * kernels. What computed the mask is then dead.
 */
public final class FoldMasks extends GraphPass {

  /**
   * The largest number that hides a score when it is added. PyTorch and models write the smallest
   * number of a type, or that of {@code float16}, instead of minus infinity; either makes a weight
   * 0 unless scores differ by as much.
   */
  static final double HIDDEN = -65504;

  /** The effect of a mask on the scores of some rows and columns. */
  private enum Shape {
    HIDES_NOTHING,
    CAUSAL
  }

  /** A mask for scores of so many rows and columns. */
  private record Use(Value mask, long rows, long columns) {}

  public FoldMasks() {
    super("fold_masks", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.mapGraphs(FoldMasks::run);
  }

  private static Graph run(Analyses own) {
    return own.ops(def -> AttentionOps.bias(def).isPresent())
            .anyMatch(op -> Folding.mask(op).isPresent())
        ? new Folding(own).run()
        : own.graph();
  }

  private static final class Folding {
    private final Graph graph;
    private final ConstantElements elements;
    private final Map<Use, Optional<Shape>> shapes = new HashMap<>();

    Folding(Analyses own) {
      this.graph = own.graph();
      this.elements = new ConstantElements(graph, own.aliases());
    }

    Graph run() {
      var copier = new GraphCopier(graph);
      for (var op : graph.ops()) {
        var args = mask(op).flatMap(mask -> folded(op, mask));
        if (args.isPresent()) {
          copier.emit(op, op.def(), copier.now(args.get()));
        } else {
          copier.keep(op);
        }
      }
      var folded = copier.finish();
      return folded == graph ? graph : Normalize.removeDeadCode(folded);
    }

    private static Optional<Value> mask(Op op) {
      return AttentionOps.bias(op.def())
          .flatMap(
              param ->
                  op.arg(param) instanceof Arg.Ref(var value) && value.isTensor()
                      ? Optional.of(value)
                      : Optional.empty());
    }

    /** {@return the arguments without the mask; empty if it must stay} */
    private Optional<ImmutableList<Arg>> folded(Op op, Value mask) {
      var schema = op.def().schema();
      var query = op.call().tensor("query");
      var key = op.call().tensor("key");
      var use = new Use(mask, query.size(query.rank() - 2), key.size(key.rank() - 2));
      return shapes
          .computeIfAbsent(use, this::shape)
          .map(
              shape -> {
                var args = new ArrayList<>(op.args());
                args.set(schema.indexOf(AttentionOps.bias(op.def()).orElseThrow()), Arg.None.NONE);
                if (shape == Shape.CAUSAL) {
                  args.set(schema.indexOf("is_causal"), new Arg.Bool(true));
                }
                return ImmutableList.copyOf(args);
              })
          .filter(args -> givesTheSame(op, args));
    }

    /** Ops that need a mask, or give its gradient, keep it. */
    private static boolean givesTheSame(Op op, ImmutableList<Arg> args) {
      try {
        return op.def().infer(args).equals(op.def().infer(op.args()));
      } catch (OpTypeException e) {
        return false;
      }
    }

    private Optional<Shape> shape(Use use) {
      var type = use.mask().tensor();
      int rank = type.rank();
      boolean bool = type.dtype() == DType.BOOL;
      if (elements.all(use.mask(), (_, row) -> seesAll(row, row.length(), bool))) {
        return Optional.of(Shape.HIDES_NOTHING);
      }
      boolean whole =
          rank >= 2 && type.size(rank - 2) == use.rows() && type.size(rank - 1) == use.columns();
      return whole
              && elements.all(use.mask(), (row, values) -> isCausal(row % use.rows(), values, bool))
          ? Optional.of(Shape.CAUSAL)
          : Optional.empty();
    }

    /** Whether none of the first elements hides a score. */
    private static boolean seesAll(Runs row, int count, boolean bool) {
      double seen = bool ? 1 : 0;
      return row.all(0, count, (first, step) -> first == seen && step == 0);
    }

    private static boolean isCausal(long line, Runs row, boolean bool) {
      int seen = (int) Math.min(line + 1, row.length());
      return seesAll(row, seen, bool)
          && row.all(
              seen,
              row.length(),
              (first, step) -> step == 0 && (bool ? first == 0 : first <= HIDDEN));
    }
  }
}
