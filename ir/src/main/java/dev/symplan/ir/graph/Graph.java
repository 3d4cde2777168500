package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import java.util.Optional;

/**
 * A function over tensors that one rank, or every rank, runs.
 *
 * @param ranks the ranks that run it; empty for all
 * @param outputs values, or {@code None}
 * @param valueCount one more than the largest value id
 * @param notes comments at its head
 * @param endNotes comments before its closing brace
 */
public record Graph(
    String name,
    ImmutableIntArray ranks,
    ImmutableList<Value> inputs,
    ImmutableList<Op> ops,
    ImmutableList<Arg> outputs,
    int valueCount,
    Span span,
    Notes notes,
    Notes endNotes) {

  public Graph {
    int next = 0;
    for (var input : inputs) {
      next = checkId(name, input, next);
    }
    for (var op : ops) {
      for (var result : op.results()) {
        next = checkId(name, result, next);
      }
    }
    if (next != valueCount) {
      throw new IllegalArgumentException(
          "graph %s has %d values, not %d".formatted(name, next, valueCount));
    }
  }

  private static int checkId(String graph, Value value, int expected) {
    if (value.id() != expected) {
      throw new IllegalArgumentException(
          "graph %s: value '%s' has id %d, not %d"
              .formatted(graph, value.name(), value.id(), expected));
    }
    return expected + 1;
  }

  /** {@return all values, each at the position of its id} */
  public ImmutableList<Value> values() {
    var values = ImmutableList.<Value>builderWithExpectedSize(valueCount);
    values.addAll(inputs);
    ops.forEach(op -> values.addAll(op.results()));
    return values.build();
  }

  /** {@return the values among the outputs} */
  public ImmutableList<Value> outputValues() {
    return Arg.operandsOf(outputs);
  }

  /**
   * {@return the op that gives an output whose elements it leaves unspecified, so that two correct
   * runs may differ in them; absent for other outputs}
   */
  public Optional<Op> unspecifiedBy(int output) {
    if (!(outputs.get(output) instanceof Arg.Ref(Value value))
        || ops.stream().anyMatch(op -> isCopiedInto(op, value))) {
      return Optional.empty();
    }
    return ops.stream()
        .filter(op -> op.results().contains(value))
        .filter(op -> op.infer().get(op.results().indexOf(value)).unspecified())
        .findFirst();
  }

  private static boolean isCopiedInto(Op op, Value value) {
    return op.def().name().toString().equals("aten::copy_") && op.written().contains(value);
  }

  public boolean runsOn(int rank) {
    return ranks.isEmpty() || ranks.contains(rank);
  }
}
