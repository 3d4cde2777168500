package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.pass.analysis.Analyses;
import java.util.Optional;

/** The products of one graph that can move to the collective of their result. */
final class ChunkableProducts {
  private final Analyses graph;
  private final ImmutableIntArray makers;

  /** By value, how often ops and outputs read it. */
  private final int[] uses;

  public ChunkableProducts(Analyses graph) {
    this.graph = graph;
    this.makers = graph.makers();
    this.uses = new int[graph.graph().valueCount()];
    for (var op : graph.graph().ops()) {
      for (var value : op.operands()) {
        uses[value.id()]++;
      }
    }
    graph.graph().outputValues().forEach(value -> uses[value.id()]++);
  }

  /** {@return the product that a collective of one tensor is of, if it can be split by rows} */
  public Optional<ChunkableProduct> before(int k) {
    var collective = graph.collectives().get(k);
    var window = graph.overlap().window(k);
    var operand = collective.operands().getFirst();
    var result = collective.results().getFirst();
    // No collective changes its order with another.
    if (window.earliest() != window.given()
        || !operand.tensor().isContiguous()
        || !result.tensor().isContiguous()
        || !graph.aliases().isWhole(operand)) {
      return Optional.empty();
    }
    var views = ImmutableList.<Integer>builder();
    var value = operand;
    while (uses[value.id()] == 1
        && makers.get(value.id()) >= 0
        && graph.aliases().isView(makers.get(value.id()))) {
      var view = graph.graph().ops().get(makers.get(value.id()));
      if (view.results().size() != 1
          || !(view.args().getFirst() instanceof Arg.Ref(Value viewed))) {
        return Optional.empty();
      }
      views.add(makers.get(value.id()));
      value = viewed;
    }
    if (uses[value.id()] != 1 || makers.get(value.id()) < 0) {
      return Optional.empty();
    }
    return readsTheSameAt(collective.index(), makers.get(value.id()))
        ? product(value, operand, views.build())
        : Optional.empty();
  }

  /** Whether nothing may write what a product reads before the place to which its parts move. */
  private boolean readsTheSameAt(int place, int product) {
    return graph.graph().ops().subList(product + 1, place).stream()
        .noneMatch(op -> op.def().schema().mutates() || op.def().isFence());
  }

  private Optional<ChunkableProduct> product(
      Value value, Value operand, ImmutableList<Integer> views) {
    var op = graph.graph().ops().get(makers.get(value.id()));
    var left = ChunkableProduct.leftParam(op);
    if (left.isEmpty()
        || !graph.aliases().families().isAlone(graph.aliases().id(value))
        || !(op.arg(left) instanceof Arg.Ref(Value factor))
        || value.tensor().numel() == 0
        || value.tensor().dtype() != operand.tensor().dtype()
        || !value.tensor().isContiguous()
        || !isRowWise(op)
        || (factor.tensor().rank() != 2 && !factor.tensor().isContiguous())) {
      return Optional.empty();
    }
    return Optional.of(new ChunkableProduct(makers.get(value.id()), op, factor, views));
  }

  /** A summand must be the same for all rows. */
  private static boolean isRowWise(Op op) {
    return !op.def().name().toString().equals("aten::addmm")
        || (op.arg("self") instanceof Arg.Ref(Value summand) && summand.tensor().rank() <= 1);
  }
}
