package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import com.google.common.primitives.Longs;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.LongStream;

/**
 * Finds where a graph adds up the gradients of the copies of each head: the gradient of a head that
 * is repeated.
 */
final class HeadSums {
  private static final int UNREAD = -1;

  /** By several ops, or by the caller. */
  private static final int SHARED = -2;

  private final Graph graph;

  /** By value, the only op that reads it. */
  private final int[] reader;

  /**
   * The sum of a gradient that nothing else reads.
   *
   * @param op the op that adds up
   * @param moves the ops before it, which give the gradient in another shape
   * @param type of the sum as [batch, shared heads, rows, features], with the strides that it has
   */
  record HeadSum(int op, ImmutableList<Integer> moves, TensorType type) {}

  HeadSums(Graph graph) {
    this.graph = graph;
    this.reader = new int[graph.valueCount()];
    Arrays.fill(reader, UNREAD);
    for (int i = 0; i < graph.ops().size(); i++) {
      for (var operand : graph.ops().get(i).operands()) {
        reader[operand.id()] = reader[operand.id()] == UNREAD ? i : SHARED;
      }
    }
    graph.outputValues().forEach(value -> reader[value.id()] = SHARED);
  }

  boolean isUnread(Value value) {
    return reader[value.id()] == UNREAD;
  }

  /**
   * {@return the sum of a gradient over the heads that were one}
   *
   * @param gradient [batch, heads, rows, features]
   * @param times how often each head was repeated
   */
  Optional<HeadSum> of(Value gradient, long times) {
    var heads = gradient.tensor();
    var moves = ImmutableList.<Integer>builder();
    var value = gradient;
    while (true) {
      int index = reader[value.id()];
      if (index < 0) {
        return Optional.empty();
      }
      var op = graph.ops().get(index);
      if (op.def().name().toString().equals("aten::sum.dim_IntList")) {
        return type(op, times).map(type -> new HeadSum(index, moves.build(), type));
      }
      if (!RepeatedHeads.isMove(op)) {
        return Optional.empty();
      }
      moves.add(index);
      value = op.result();
      if (!value.tensor().sizes().equals(heads.sizes())
          && !RepeatedHeads.hasGroups(value.tensor(), heads)) {
        return Optional.empty();
      }
    }
  }

  /**
   * {@return whether a sum is of [batch, shared heads, group, ...], else of [batch, group, ...]}
   */
  static boolean isOfGroups(Op sum) {
    return sum.call().tensor("self").rank() == 5;
  }

  /** The type of the sum over a group of so many heads; empty if it is another sum. */
  private static Optional<TensorType> type(Op sum, long times) {
    var from = sum.call().tensor("self");
    int group = isOfGroups(sum) ? 2 : 1;
    boolean known =
        sum.arg("dim") instanceof Arg.Seq(var dims)
            && dims.size() == 1
            && dims.getFirst() instanceof Arg.Int(long dim)
            && OpCall.wrapDim(dim, from.rank(), "dim") == group
            && from.size(group) == times
            && sum.arg("keepdim") instanceof Arg.Bool;
    if (!known || sum.result().tensor().dtype() != from.dtype()) {
      return Optional.empty();
    }
    boolean kept = sum.arg("keepdim").equals(new Arg.Bool(true));
    var type = sum.result().tensor();
    return Optional.of(
        isOfGroups(sum)
            ? kept ? without(type, group) : type
            : kept ? type : withOne(type, group, type.size(group) * type.stride(group)));
  }

  private static TensorType without(TensorType type, int dim) {
    return new TensorType(
        type.dtype(), without(type.sizes(), dim), without(type.strides(), dim), type.space());
  }

  private static ImmutableLongArray without(ImmutableLongArray values, int dim) {
    var left =
        LongStream.range(0, values.length()).filter(i -> i != dim).map(i -> values.get((int) i));
    return ImmutableLongArray.copyOf(left.toArray());
  }

  private static TensorType withOne(TensorType type, int dim, long stride) {
    return new TensorType(
        type.dtype(), with(type.sizes(), dim, 1), with(type.strides(), dim, stride), type.space());
  }

  private static ImmutableLongArray with(ImmutableLongArray values, int dim, long value) {
    return ImmutableLongArray.copyOf(
        Longs.concat(
            values.subArray(0, dim).toArray(),
            new long[] {value},
            values.subArray(dim, values.length()).toArray()));
  }
}
