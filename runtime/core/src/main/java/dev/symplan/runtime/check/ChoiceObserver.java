package dev.symplan.runtime.check;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.TruthCheck.OtherChoice;
import dev.symplan.runtime.host.NaiveOps;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Rounding;
import dev.symplan.runtime.tensor.TensorDiff;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import java.util.function.Function;

/** Puts the choices of a run into an evaluation in f64 where rounding explains them. */
final class ChoiceObserver implements Reference.Observer {
  /** How often a choice is repeated with errors in its operands, to see whether it changes. */
  private static final int DRAWS = 4;

  /** The choices of one rank: the values that the session gives after the graph's own outputs. */
  private record OfRank(
      Rounding rounding, Map<Integer, Choice> byResult, Map<Integer, HostTensor> given) {

    /** {@return the relative error that rounding explains in an operand} */
    double tolerance(Value operand) {
      return TensorDiff.limit(DType.F64, rounding.ofOutput(new Arg.Ref(operand)));
    }

    HostTensor given(Value value) {
      return Objects.requireNonNull(given.get(value.id()));
    }
  }

  private final List<OfRank> ranks = new ArrayList<>();
  private final ImmutableList.Builder<OtherChoice> others = ImmutableList.builder();

  private final Random random = new Random(0);
  private boolean anyIsClose;

  ChoiceObserver(Session session, List<Graph> graphs) {
    for (int rank = 0; rank < graphs.size(); rank++) {
      var graph = graphs.get(rank);
      var of = new OfRank(Rounding.of(graph), new HashMap<>(), new HashMap<>());
      int next = graph.outputs().size();
      for (var choice : Choice.of(graph)) {
        of.byResult.put(choice.op().results().getFirst().id(), choice);
        for (var value : choice.given()) {
          of.given.put(value.id(), session.output(rank, next++).orElseThrow());
        }
      }
      ranks.add(of);
    }
  }

  /** {@return the choices that are not those of f64, so far} */
  ImmutableList<OtherChoice> others() {
    return others.build();
  }

  /** {@return whether errors within the tolerance could have changed any choice} */
  boolean anyIsClose() {
    return anyIsClose;
  }

  @Override
  public void before(int rank, Op op) {}

  @Override
  public void after(int rank, Op op, Function<Value, HostTensor> values) {
    var of = ranks.get(rank);
    if (op.results().isEmpty() || !of.byResult.containsKey(op.results().getFirst().id())) {
      return;
    }
    var choice = Objects.requireNonNull(of.byResult.get(op.results().getFirst().id()));
    anyIsClose |= isClose(of, choice, op, values);
    for (var result : choice.results()) {
      var truth = values.apply(result);
      var own = of.given(result);
      long differing = TensorDiff.between(truth, own).unequal();
      if (differing > 0) {
        var fault = fault(of, choice, result, values);
        others.add(
            new OtherChoice(
                rank,
                "%s (%s)".formatted(op.label(), op.span().shortForm()),
                differing,
                truth.type().numel(),
                fault));
        if (fault.isEmpty()) {
          truth.copyFrom(own);
        }
      }
    }
  }

  /** {@return why rounding does not explain another choice; empty if it does} */
  private static Optional<String> fault(
      OfRank of, Choice choice, Value result, Function<Value, HostTensor> values) {
    for (var operand : choice.operands()) {
      var diff = TruthCheck.distance(of.given(operand), values.apply(operand));
      double limit = of.tolerance(operand);
      if (diff.relativeL2() > limit || diff.maxAbs() > limit * diff.largest()) {
        return Optional.of(
            "its operand '%s' is further from f64 than rounding explains"
                .formatted(operand.name()));
      }
    }
    var again =
        NaiveOps.run(
            choice.op(), v -> of.given.containsKey(v.id()) ? of.given(v) : values.apply(v));
    var computed = again.get(choice.op().results().indexOf(result)).orElseThrow();
    return TensorDiff.between(computed, of.given(result)).unequal() == 0
        ? Optional.empty()
        : Optional.of("the op gives another choice for the operands of the run");
  }

  /** Chooses again from operands with errors, several times. */
  private boolean isClose(OfRank of, Choice choice, Op op, Function<Value, HostTensor> values) {
    for (int draw = 0; draw < DRAWS; draw++) {
      var noisy = new HashMap<Integer, HostTensor>();
      for (var operand : choice.operands()) {
        noisy.put(operand.id(), withErrors(values.apply(operand), of.tolerance(operand)));
      }
      var chosen = NaiveOps.run(op, v -> noisy.getOrDefault(v.id(), values.apply(v)));
      for (int i = 0; i < chosen.size(); i++) {
        var result = choice.op().results().get(i);
        if (choice.results().contains(result)
            && TensorDiff.between(chosen.get(i).orElseThrow(), values.apply(result)).unequal()
                > 0) {
          return true;
        }
      }
    }
    return false;
  }

  private HostTensor withErrors(HostTensor tensor, double tolerance) {
    var copy = tensor.copyAs(tensor.type().contiguous());
    var elements = copy.memory().toArray(ValueLayout.JAVA_DOUBLE);
    double squares = Arrays.stream(elements).filter(Double::isFinite).map(x -> x * x).sum();
    double scale = tolerance * Math.sqrt(squares / Math.max(1, elements.length));
    for (int i = 0; i < elements.length; i++) {
      elements[i] += scale * random.nextGaussian();
    }
    MemorySegment.copy(elements, 0, copy.memory(), ValueLayout.JAVA_DOUBLE, 0, elements.length);
    return copy;
  }
}
