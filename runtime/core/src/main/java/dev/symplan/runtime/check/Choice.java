package dev.symplan.runtime.check;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import java.util.stream.Stream;

/**
 * An op that makes integers or bools of floats, such as {@code topk}, {@code argmax}, {@code sort}
 * or a comparison: where floats are almost equal, rounding decides what it gives.
 *
 * @param operands its operands that are floats
 * @param results its results that are not
 */
record Choice(Op op, ImmutableList<Value> operands, ImmutableList<Value> results) {

  /** {@return those of a graph, in the order of its ops} */
  static ImmutableList<Choice> of(Graph graph) {
    return graph.ops().stream()
        .filter(op -> op.def().collective().isEmpty())
        .map(
            op ->
                new Choice(
                    op,
                    tensors(op.operands().stream().distinct(), true),
                    tensors(op.results().stream(), false)))
        .filter(choice -> !choice.operands.isEmpty() && !choice.results.isEmpty())
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the operands, then the results} */
  ImmutableList<Value> given() {
    return ImmutableList.<Value>builder().addAll(operands).addAll(results).build();
  }

  private static ImmutableList<Value> tensors(Stream<Value> values, boolean inexact) {
    return values
        .filter(value -> value.isTensor() && isInexact(value.tensor().dtype()) == inexact)
        .collect(ImmutableList.toImmutableList());
  }

  private static boolean isInexact(DType dtype) {
    return switch (dtype.kind()) {
      case FLOAT, COMPLEX -> true;
      case INTEGER, BOOL -> false;
    };
  }
}
