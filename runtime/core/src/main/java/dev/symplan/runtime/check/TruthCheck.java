package dev.symplan.runtime.check;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Rounding;
import dev.symplan.runtime.tensor.TensorDiff;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;

/**
 * Judges outputs that differ from the expected ones by more than the tolerance: both are compared
 * with the program evaluated in f64.
 *
 * <p>The program may choose: see {@link Choice}. A second run, of a plan that also gives out what
 * each choice read and chose, must have the same outputs to the bit. The evaluation then takes the
 * run's choices instead of its own, where two things hold: the op gives this choice for the
 * operands of the run, and these agree with the operands in f64 within the tolerance, both as a
 * whole and in each element.
 */
public final class TruthCheck {
  /** How much further from f64 than the expected output another output may be. */
  private static final double SLACK = 1.5;

  /** By how many tolerances rounding alone may take an expected output away from f64. */
  private static final double MAX_ROUNDING = 2;

  /** The share of elements that other choices may explain. */
  private static final double MAX_CHOSEN = 0.05;

  /** The result of a check. */
  public sealed interface Outcome {}

  /**
   * The outputs were compared with f64.
   *
   * @param choices those of the run that are not those of f64
   */
  public record Judged(ImmutableList<Distance> outputs, ImmutableList<OtherChoice> choices)
      implements Outcome {

    /** {@return whether rounding explains all outputs and choices} */
    public boolean agrees() {
      return outputs.stream().allMatch(Distance::agrees)
          && choices.stream().allMatch(choice -> choice.fault().isEmpty());
    }
  }

  /** The program could not be evaluated in f64. */
  public record Unknown(String reason) implements Outcome {}

  /**
   * The distance of an output from f64, as relative L2 errors.
   *
   * @param actual the distance of the run's output; infinite for integers that differ
   * @param expected the distance of the expected output
   * @param chosen the share of the elements of the expected output that are further from f64 than
   *     the tolerance; 1 if no choice of the graph can explain them
   * @param tolerance the distance that is allowed in any case
   */
  public record Distance(
      int rank, int index, double actual, double expected, double chosen, double tolerance) {

    /** {@return whether the run's output is about as close to f64 as the expected output} */
    public boolean agrees() {
      double rounding = Math.min(expected, MAX_ROUNDING * tolerance);
      return expectedAgrees() && actual <= Math.max(tolerance, SLACK * rounding);
    }

    /**
     * {@return whether rounding or other choices explain the expected output; if not, the graph
     * does not say what was expected, or the evaluation in f64 is wrong}
     */
    public boolean expectedAgrees() {
      return expected <= MAX_ROUNDING * tolerance || chosen <= MAX_CHOSEN;
    }
  }

  /**
   * A choice of the run that is not the one of f64.
   *
   * @param op its name and source
   * @param differing the number of elements that differ
   * @param fault why rounding does not explain it; empty if it does
   */
  public record OtherChoice(
      int rank, String op, long differing, long elements, Optional<String> fault) {}

  private final Program program;
  private final List<Graph> graphs;
  private final List<List<Optional<HostTensor>>> actual;
  private final List<List<Optional<HostTensor>>> expected;

  private TruthCheck(
      Program program,
      List<Graph> graphs,
      List<List<Optional<HostTensor>>> actual,
      List<List<Optional<HostTensor>>> expected) {
    this.program = program;
    this.graphs = graphs;
    this.actual = actual;
    this.expected = expected;
  }

  /**
   * {@return how the outputs compare with f64}
   *
   * @param program the program that was compiled, as it was read
   * @param compiler the one that made the plan
   * @param fill fills the inputs of a session
   * @param actual the outputs of each rank
   * @param expected the expected outputs of each rank
   */
  public static Outcome of(
      Program program,
      Compiler compiler,
      Backend backend,
      SessionOptions options,
      BiConsumer<Session, Plan> fill,
      List<List<Optional<HostTensor>>> actual,
      List<List<Optional<HostTensor>>> expected) {
    try {
      return new TruthCheck(program, GraphChoice.of(program, compiler.options()), actual, expected)
          .judge(compiler, backend, options, fill);
    } catch (RunException | CompileException e) {
      return new Unknown(String.valueOf(e.getMessage()));
    }
  }

  private Outcome judge(
      Compiler compiler, Backend backend, SessionOptions options, BiConsumer<Session, Plan> fill) {
    var plan = compiler.compile(withChoices());
    try (var session = Session.open(plan, backend, options)) {
      fill.accept(session, plan);
      var inputs = new ArrayList<List<Optional<HostTensor>>>();
      for (int rank = 0; rank < graphs.size(); rank++) {
        int self = rank;
        inputs.add(
            IntStream.range(0, session.inputNames(self).size())
                .mapToObj(i -> session.input(self, i).map(TruthCheck::widened))
                .toList());
      }
      session.run();
      if (!givesActual(session)) {
        return new Unknown("a plan that gives out the choices of the graph has other results");
      }
      var wide = graphs.stream().distinct().map(g -> new Wide(g, Widening.of(g))).toList();
      var wideOf = graphs.stream().map(graph -> wideOf(wide, graph)).toList();
      var choices = new ChoiceObserver(session, graphs);
      var truths = new ArrayList<List<List<Optional<HostTensor>>>>();
      Reference.Inputs given = (rank, index) -> inputs.get(rank).get(index);
      truths.add(Reference.evaluate(wideOf, plan.groups(), given, choices).outputs());
      if (!choices.others().isEmpty()) {
        truths.add(Reference.evaluate(wideOf, plan.groups(), given).outputs());
      }
      return new Judged(distances(truths, choices.anyIsClose()), choices.others());
    }
  }

  private record Wide(Graph graph, Graph widened) {}

  private static Graph wideOf(List<Wide> wide, Graph graph) {
    return wide.stream().filter(w -> w.graph == graph).findFirst().orElseThrow().widened;
  }

  /** {@return the program whose graphs also give out what each choice reads and gives} */
  private Program withChoices() {
    return new Program(
        program.groups(),
        program.declarations(),
        program.graphs().stream()
            .map(TruthCheck::withChoices)
            .collect(ImmutableList.toImmutableList()),
        program.endNotes(),
        program.headNotes());
  }

  private static Graph withChoices(Graph graph) {
    var outputs = ImmutableList.<Arg>builder().addAll(graph.outputs());
    for (var choice : Choice.of(graph)) {
      choice.given().forEach(value -> outputs.add(new Arg.Ref(value)));
    }
    return new Graph(
        graph.name(),
        graph.ranks(),
        graph.inputs(),
        graph.ops(),
        outputs.build(),
        graph.valueCount(),
        graph.span(),
        graph.notes(),
        graph.endNotes());
  }

  private boolean givesActual(Session session) {
    for (int rank = 0; rank < graphs.size(); rank++) {
      for (int i = 0; i < actual.get(rank).size(); i++) {
        var first = actual.get(rank).get(i);
        if (graphs.get(rank).unspecifiedBy(i).isEmpty()
            && first.isPresent()
            && TensorDiff.between(session.output(rank, i).orElseThrow(), first.get()).unequal()
                > 0) {
          return false;
        }
      }
    }
    return true;
  }

  private ImmutableList<Distance> distances(
      List<List<List<Optional<HostTensor>>>> truths, boolean mayChoose) {
    var distances = ImmutableList.<Distance>builder();
    for (int rank = 0; rank < graphs.size(); rank++) {
      var graph = graphs.get(rank);
      var rounding = Rounding.of(graph);
      for (int i = 0; i < graph.outputs().size(); i++) {
        if (actual.get(rank).get(i).isPresent() && graph.unspecifiedBy(i).isEmpty()) {
          var truth = truths.getFirst().get(rank).get(i).orElseThrow();
          var own = distance(actual.get(rank).get(i).get(), truth);
          double limit = own.limit(rounding.ofOutput(graph.outputs().get(i)));
          if (limit == 0) {
            double distance = own.unequal() == 0 ? 0 : Double.POSITIVE_INFINITY;
            distances.add(new Distance(rank, i, distance, 0, 0, 0));
          } else {
            distances.add(closest(rank, i, own.relativeL2(), truths, limit, mayChoose));
          }
        }
      }
    }
    return distances.build();
  }

  /** The expected output may follow the choices of the run or those of f64. */
  private Distance closest(
      int rank,
      int index,
      double actual,
      List<List<List<Optional<HostTensor>>>> truths,
      double tolerance,
      boolean mayChoose) {
    var others = expected.get(rank).get(index).orElseThrow();
    return truths.stream()
        .map(all -> all.get(rank).get(index).orElseThrow())
        .map(
            truth ->
                new Distance(
                    rank,
                    index,
                    actual,
                    distance(others, truth).relativeL2(),
                    mayChoose ? shareBeyond(others, truth, tolerance) : 1,
                    tolerance))
        .min(Comparator.comparingDouble(Distance::expected))
        .orElseThrow();
  }

  /** {@return the share of elements that differ by more than a part of their root mean square} */
  private static double shareBeyond(HostTensor tensor, HostTensor truth, double part) {
    var a = flat(tensor);
    var b = flat(truth);
    double squares = Arrays.stream(b).filter(Double::isFinite).map(x -> x * x).sum();
    double limit = part * Math.sqrt(squares / b.length);
    long beyond =
        IntStream.range(0, b.length)
            .filter(i -> a[i] != b[i] && !(Math.abs(a[i] - b[i]) <= limit))
            .count();
    return (double) beyond / b.length;
  }

  private static double[] flat(HostTensor tensor) {
    return widened(tensor).contiguous().memory().toArray(ValueLayout.JAVA_DOUBLE);
  }

  private static HostTensor widened(HostTensor tensor) {
    return tensor.copyAs(Widening.of(tensor.type()));
  }

  static TensorDiff distance(HostTensor tensor, HostTensor truth) {
    return TensorDiff.between(widened(tensor), truth);
  }
}
