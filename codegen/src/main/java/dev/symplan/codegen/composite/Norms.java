package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.ir.op.OpCall;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Group and batch norms (Wu, He 2018; Ioffe, Szegedy 2015), and the gradients of all norms: a step
 * for what is of rows that statistics are of, and one for the gradients of weights where those are
 * of other rows.
 */
final class Norms {
  static final ImmutableMap<String, Composite> TABLE =
      ImmutableMap.<String, Composite>builder()
          .put("aten::native_group_norm", call -> forward(call, Shape.groups(call, "group")))
          .put("aten::group_norm", call -> forward(call, Shape.groups(call, "num_groups")))
          .put("aten::_native_batch_norm_legit_functional", Norms::batch)
          .put("aten::_batch_norm_with_update_functional", Norms::batch)
          .put("aten::_native_batch_norm_legit.no_stats", Norms::batch)
          .put("aten::_native_batch_norm_legit_no_training", Norms::batch)
          .put("aten::native_layer_norm_backward", call -> backward(call, Shape.layers(call)))
          .put("aten::_fused_rms_norm_backward", call -> backward(call, Shape.layers(call)))
          .put(
              "aten::native_group_norm_backward",
              call -> backward(call, Shape.groups(call, "group")))
          .put("aten::native_batch_norm_backward", call -> backward(call, Shape.batch(call)))
          .put("aten::batch_norm_backward", call -> backward(call, Shape.batch(call)))
          .buildOrThrow();

  private Norms() {}

  /**
   * The view that an op has of its tensors.
   *
   * @param sizes of the input
   * @param row the dimensions that statistics are of
   * @param shared the dimensions along which weights are the same
   */
  private record Shape(ImmutableLongArray sizes, Set<Integer> row, Set<Integer> shared) {

    private static Shape of(ImmutableLongArray sizes, Set<Integer> row, Set<Integer> apart) {
      return new Shape(
          sizes,
          row,
          Sets.difference(Sets.newTreeSet(range(0, sizes.length())), apart).immutableCopy());
    }

    private static ImmutableSet<Integer> range(int from, int to) {
      return IntStream.range(from, to).boxed().collect(ImmutableSet.toImmutableSet());
    }

    static Shape layers(Expansion expansion) {
      var sizes = sizes(expansion.call());
      int rows = sizes.length() - expansion.call().integers("normalized_shape").length();
      var row = range(rows, sizes.length());
      return of(sizes, row, row);
    }

    static Shape groups(Expansion expansion, String groups) {
      var sizes = sizes(expansion.call());
      long count = expansion.call().integer(groups);
      var split =
          ImmutableLongArray.builder()
              .add(sizes.get(0))
              .add(count)
              .add(sizes.get(1) / count)
              .addAll(sizes.subArray(2, sizes.length()))
              .build();
      return of(split, range(2, split.length()), ImmutableSet.of(1, 2));
    }

    static Shape batch(Expansion expansion) {
      var sizes = sizes(expansion.call());
      var channel = ImmutableSet.of(1);
      var row = Sets.difference(range(0, sizes.length()), channel).immutableCopy();
      return of(sizes, row, channel);
    }

    private static ImmutableLongArray sizes(OpCall call) {
      return call.tensor("input").sizes();
    }

    ImmutableLongArray statistics() {
      return Expansion.without(sizes, row);
    }

    ImmutableLongArray weights() {
      return Expansion.without(sizes, shared);
    }
  }

  private static ImmutableList<Step> batch(Expansion call) {
    return forward(call, Shape.batch(call));
  }

  private static ImmutableList<Step> forward(Expansion call, Shape shape) {
    var all = IntStream.range(0, call.results().size()).boxed().toList();
    return steps(call, shape, shape.row(), all, i -> i == 0 ? shape.sizes() : shape.statistics());
  }

  private static ImmutableList<Step> backward(Expansion call, Shape shape) {
    Function<Integer, ImmutableLongArray> sizes = i -> i == 0 ? shape.sizes() : shape.weights();
    return shape.row().equals(shape.shared())
        ? steps(call, shape, shape.row(), ImmutableList.of(0, 1, 2), sizes)
        : ImmutableList.<Step>builder()
            .addAll(steps(call, shape, shape.row(), ImmutableList.of(0), sizes))
            .addAll(steps(call, shape, shape.shared(), ImmutableList.of(1, 2), sizes))
            .build();
  }

  /** {@return a step for some of the results, if any of them is needed} */
  private static ImmutableList<Step> steps(
      Expansion call,
      Shape shape,
      Set<Integer> row,
      Iterable<Integer> numbers,
      Function<Integer, ImmutableLongArray> sizes) {
    var exprs = new ArrayList<Expr>();
    var results = new ArrayList<Seen>();
    for (int number : numbers) {
      if (call.needs(number)) {
        exprs.add(call.value(number));
        results.add(call.result(number, sizes.apply(number)));
      }
    }
    return exprs.isEmpty()
        ? ImmutableList.of()
        : ImmutableList.of(
            Expansion.step(
                exprs, shape.sizes(), row, operands(call, shape), call.constants(), results));
  }

  private static Map<String, Seen> operands(Expansion call, Shape shape) {
    var operands = new HashMap<String, Seen>();
    for (var param : call.call().schema().params()) {
      var name = param.name();
      // PyTorch's own notes hold no numbers.
      if (call.isTensor(name) && !name.equals("reserve")) {
        var sizes =
            switch (name) {
              case "input", "grad_out" -> shape.sizes();
              case "weight", "bias" -> shape.weights();
              default -> shape.statistics();
            };
        operands.put(name, call.argument(name, sizes));
      }
    }
    return operands;
  }
}
