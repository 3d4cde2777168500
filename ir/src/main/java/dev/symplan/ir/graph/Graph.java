package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ImmutableLists;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * A function over tensors that one rank, or every rank, runs.
 *
 * @param ranks the ranks that run it; empty for all
 * @param outputs values, or {@code None}
 * @param valueCount more than any id of a value; as many as there are values if the graph is {@link
 *     #numbered}, as those are that a builder made
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
    var taken = new boolean[valueCount];
    for (var input : inputs) {
      take(input, taken, name);
      if (input.id() >= inputs.size()) {
        throw new IllegalArgumentException("graph %s: inputs have the first ids".formatted(name));
      }
    }
    for (var op : ops) {
      for (var result : op.results()) {
        take(result, taken, name);
      }
    }
  }

  private static void take(Value value, boolean[] taken, String graph) {
    if (value.id() >= taken.length) {
      throw new IllegalArgumentException(
          "graph %s has an id %s of %s".formatted(graph, value.id(), taken.length));
    }
    if (taken[value.id()]) {
      throw new IllegalArgumentException(
          "the id %s of '%s' is taken".formatted(value.id(), value.name()));
    }
    taken[value.id()] = true;
  }

  /**
   * {@return all values as they are defined: if the graph is numbered, in the order of their ids}
   */
  public ImmutableList<Value> values() {
    var values = ImmutableList.<Value>builderWithExpectedSize(valueCount);
    values.addAll(inputs);
    values.addAll(Parallel.concat(ops.size(), (from, to) -> results(ops.subList(from, to))));
    return values.build();
  }

  private static List<Value> results(List<Op> ops) {
    var results = new ArrayList<Value>(ops.size());
    for (var op : ops) {
      results.addAll(op.results());
    }
    return results;
  }

  /** {@return the graph with some of its ops, in an order in which operands come first} */
  public Graph withOps(Collection<Op> some) {
    return new Graph(
        name,
        ranks,
        inputs,
        ImmutableList.copyOf(some),
        outputs,
        valueCount,
        span,
        notes,
        endNotes);
  }

  /** {@return the same graph with ids in the order of its values, without gaps} */
  public Graph numbered() {
    var values = values();
    var numbered = new Value[valueCount];
    if (values.size() == valueCount
        && Parallel.where(valueCount, id -> values.get(id).id() != id).length == 0) {
      return this;
    }
    Parallel.forEach(
        values.size(),
        (from, to) -> {
          for (int id = from; id < to; id++) {
            numbered[values.get(id).id()] = values.get(id).withId(id);
          }
        });
    UnaryOperator<Value> now = value -> numbered[value.id()];
    return new Graph(
        name,
        ranks,
        inputs,
        Parallel.map(ops.size(), i -> ops.get(i).map(now)),
        ImmutableLists.map(outputs, output -> output.map(now)),
        values.size(),
        span,
        notes,
        endNotes);
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
