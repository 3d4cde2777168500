package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.Shapes;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** Losses and their gradients; {@code reduction} is 0 for none, 1 for the mean, 2 for the sum. */
final class Losses {
  private static final int NONE = 0;

  static final ImmutableMap<String, Composite> TABLE =
      ImmutableMap.of(
          "aten::mse_loss", Losses::squaredError,
          "aten::nll_loss_forward", Losses::likelihood,
          "aten::nll_loss_backward", Losses::likelihoodBackward,
          "aten::cross_entropy_loss", Losses::crossEntropy);

  private Losses() {}

  private static Set<Integer> all(ImmutableLongArray sizes) {
    return IntStream.range(0, sizes.length()).boxed().collect(ImmutableSet.toImmutableSet());
  }

  private static boolean isReduced(Expansion call) {
    return call.call().integer("reduction") != NONE;
  }

  private static ImmutableList<Step> squaredError(Expansion call) {
    if (!call.needs(0)) {
      return ImmutableList.of();
    }
    var self = call.call().tensor("self");
    var target = call.call().tensor("target");
    var sizes = Shapes.broadcast(ImmutableList.of(self, target));
    boolean reduced = isReduced(call);
    return ImmutableList.of(
        Expansion.step(
            ImmutableList.of(call.value(0)),
            sizes,
            reduced ? all(sizes) : ImmutableSet.of(),
            ImmutableMap.of(
                "self", call.argument("self", padded(self.sizes(), sizes.length())),
                "target", call.argument("target", padded(target.sizes(), sizes.length()))),
            call.constants(),
            ImmutableList.of(
                call.result(0, reduced ? Expansion.without(sizes, all(sizes)) : sizes))));
  }

  /** {@return sizes with dimensions of one element before them} */
  private static ImmutableLongArray padded(ImmutableLongArray sizes, int rank) {
    return ImmutableLongArray.builder()
        .addAll(IntStream.range(sizes.length(), rank).mapToLong(_ -> 1))
        .addAll(sizes)
        .build();
  }

  /**
   * Rows of classes.
   *
   * @param sizes of the log-probabilities
   * @param dim that of classes
   */
  private record Classes(Expansion call, ImmutableLongArray sizes, int dim) {

    static Classes of(Expansion call) {
      var self = call.call().tensor("self");
      return new Classes(call, self.sizes(), self.rank() == 1 ? 0 : 1);
    }

    Set<Integer> row() {
      return ImmutableSet.of(dim);
    }

    /** {@return the shape of what there is one of for each row} */
    ImmutableLongArray rows() {
      return Expansion.without(sizes, row());
    }

    /** {@return the shape of what there is one of} */
    ImmutableLongArray ones() {
      return Expansion.without(sizes, all(sizes));
    }

    private ImmutableLongArray classes() {
      var others = IntStream.range(0, sizes.length()).filter(i -> i != dim).boxed();
      return Expansion.without(sizes, others.collect(ImmutableSet.toImmutableSet()));
    }

    Map<String, Seen> operands() {
      var operands = new HashMap<String, Seen>();
      operands.put("class", Expansion.index(classes()));
      for (var param : call.call().schema().params()) {
        var name = param.name();
        if (call.isTensor(name)) {
          var shape =
              switch (name) {
                case "self" -> sizes;
                case "weight" -> classes();
                case "total_weight" -> ones();
                case "grad_output" -> isReduced(call) ? ones() : rows();
                default -> isOfProbabilities() ? sizes : rows();
              };
          operands.put(name, call.argument(name, shape));
        }
      }
      if (!isOfProbabilities()) {
        operands.put("picked", picked("self", dim));
        if (call.isTensor("weight")) {
          operands.put("picked_weight", picked("weight", 0));
        }
      }
      return operands;
    }

    /** {@return an argument's elements for the targets, by rows} */
    private Seen picked(String param, int along) {
      var type = call.call().tensor(param);
      var strides = param.equals("self") ? type.strides().toArray() : new long[sizes.length()];
      strides[dim] = 0;
      var source =
          new Source.Picked(
              new Source.Argument(param, 0),
              "target",
              type.stride(along),
              type.size(along),
              call.call().integer("ignore_index"));
      return new Seen(source, type, false).as(rows(), ImmutableLongArray.copyOf(strides));
    }

    private boolean isOfProbabilities() {
      return call.call().tensor("target").sizes().equals(sizes);
    }

    Map<String, Arg> constants() {
      var constants = new HashMap<>(call.constants());
      constants.put("classes", new Arg.Int(sizes.get(dim)));
      if (isOfProbabilities()) {
        constants.put("probabilities", new Arg.Bool(true));
      }
      return constants;
    }

    /** {@return a step that computes some of the values, from one on} */
    Step step(int value, ImmutableLongArray of, Set<Integer> row, Seen... results) {
      return Expansion.step(
          IntStream.range(value, value + results.length).mapToObj(call::value).toList(),
          of,
          row,
          operands(),
          constants(),
          ImmutableList.copyOf(results));
    }
  }

  private static ImmutableList<Step> likelihood(Expansion call) {
    var rows = Classes.of(call);
    var of = rows.rows();
    if (isReduced(call) && call.needs(0) && call.needs(1)) {
      return ImmutableList.of(
          rows.step(0, of, all(of), call.result(0, rows.ones()), call.result(1, rows.ones())));
    }
    var steps = ImmutableList.<Step>builder();
    if (call.needs(0)) {
      steps.add(
          isReduced(call)
              ? rows.step(0, of, all(of), call.result(0, rows.ones()))
              : rows.step(0, of, ImmutableSet.of(), call.result(0, of)));
    }
    if (call.needs(1)) {
      steps.add(rows.step(1, of, all(of), call.result(1, rows.ones())));
    }
    return steps.build();
  }

  private static ImmutableList<Step> likelihoodBackward(Expansion call) {
    var rows = Classes.of(call);
    return call.needs(0)
        ? ImmutableList.of(
            rows.step(0, rows.sizes(), ImmutableSet.of(), call.result(0, rows.sizes())))
        : ImmutableList.of();
  }

  private static ImmutableList<Step> crossEntropy(Expansion call) {
    var rows = Classes.of(call);
    if (!call.needs(0)) {
      return ImmutableList.of();
    } else if (!isReduced(call)) {
      return ImmutableList.of(rows.step(0, rows.sizes(), rows.row(), call.result(0, rows.rows())));
    }
    var losses = Expansion.temporary(0, rows.rows());
    var divisors = Expansion.temporary(1, rows.rows());
    return ImmutableList.of(
        rows.step(0, rows.sizes(), rows.row(), losses, divisors),
        Expansion.step(
            ImmutableList.of(call.value(2)),
            rows.rows(),
            all(rows.sizes()),
            ImmutableMap.of("losses", losses, "divisors", divisors),
            rows.constants(),
            ImmutableList.of(call.result(0, rows.ones()))));
  }
}
