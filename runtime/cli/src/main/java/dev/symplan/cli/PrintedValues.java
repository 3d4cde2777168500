package dev.symplan.cli;

import com.google.common.collect.ImmutableSet;
import dev.symplan.cli.common.Console;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Suggestions;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.TensorText;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The values that {@code run --print} names. Inputs and outputs are those of the run. The memory of
 * any other value is soon another's, so it is taken from the evaluation without a plan.
 */
final class PrintedValues {
  private final Plan plan;
  private final ImmutableSet<String> names;

  /** By name, and then by rank. */
  private final Map<String, SortedMap<Integer, HostTensor>> tensors = new HashMap<>();

  /**
   * @throws CompileException when the plan has no value of a name
   */
  PrintedValues(Plan plan, List<String> names, Path input) {
    this.plan = plan;
    this.names = ImmutableSet.copyOf(names);
    for (var name : this.names) {
      if (values(plan).noneMatch(value -> value.isTensor() && value.name().equals(name))) {
        throw unknown(plan, input, "tensor", name);
      }
      tensors.put(name, new TreeMap<>());
    }
  }

  private static Stream<Value> values(Plan plan) {
    return plan.rankPlans().stream().flatMap(rankPlan -> rankPlan.graph().values().stream());
  }

  /**
   * {@return that a plan has no value of a name, with the name that may have been meant, or how to
   * see all}
   */
  static CompileException unknown(Plan plan, Path input, String what, String name) {
    return CompileException.ofFile(
        DiagnosticCode.UNKNOWN_VALUE,
        input,
        "the plan has no %s '%s'".formatted(what, name),
        Suggestions.closest(name, values(plan).map(Value::name).toList())
            .map("did you mean '%s'?"::formatted)
            .orElse("'symplan dump %s --view values' lists them".formatted(input)));
  }

  private Graph graph(int rank) {
    return plan.forRank(rank).graph();
  }

  private static boolean isOutput(Graph graph, String name) {
    return graph.outputValues().stream().anyMatch(value -> value.name().equals(name));
  }

  private static boolean isInput(Graph graph, String name) {
    return graph.inputs().stream().anyMatch(value -> value.name().equals(name));
  }

  /** Keeps the values that only an evaluation of the plan's graphs gives, if there are any. */
  void evaluate(Reference.Inputs inputs, SessionOptions options, Console console) {
    if (names.stream().allMatch(this::isGivenByTheRun)) {
      return;
    }
    var graphs = Reference.graphs(plan);
    var progress = new Evaluation(graphs, options, console);
    var observer =
        new Reference.Observer() {
          @Override
          public void before(int rank, Op op) {
            progress.before(rank, op);
          }

          @Override
          public void after(int rank, Op op, Function<Value, HostTensor> values) {
            keep(rank, op, values);
          }
        };
    Reference.evaluate(graphs, plan.groups(), inputs, observer);
  }

  private boolean isGivenByTheRun(String name) {
    return plan.rankPlans().stream()
        .map(RankPlan::graph)
        .allMatch(graph -> isInput(graph, name) || isOutput(graph, name));
  }

  private void keep(int rank, Op op, Function<Value, HostTensor> values) {
    for (var result : op.results()) {
      if (names.contains(result.name()) && !isOutput(graph(rank), result.name())) {
        keep(result.name(), rank, values.apply(result));
      }
    }
  }

  private SortedMap<Integer, HostTensor> byRank(String name) {
    return Objects.requireNonNull(tensors.get(name));
  }

  private void keep(String name, int rank, HostTensor tensor) {
    byRank(name).computeIfAbsent(rank, _ -> tensor.copyAs(tensor.type().contiguous()));
  }

  /** Keeps inputs as they are before the run, which may write into them. */
  void keepInputs(Session session) {
    for (int rank : session.localRanks()) {
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        var name = graph(rank).inputs().get(i).name();
        if (names.contains(name)) {
          var tensor = session.input(rank, i);
          if (tensor.isPresent()) {
            keep(name, rank, tensor.get());
          }
        }
      }
    }
  }

  /** A value, and the ranks that have it. */
  private record Shared(HostTensor tensor, List<Integer> ranks) {}

  /** Prints the values, once for ranks that have the same. */
  void print(Session session, Console console) {
    for (var name : names) {
      for (int rank : session.localRanks()) {
        output(session, rank, name).ifPresent(tensor -> keep(name, rank, tensor));
      }
      for (var shared : shared(byRank(name), session.localRanks())) {
        console.print(
            "%s: %s %s, %s\n%s\n\n"
                .formatted(
                    name,
                    shared.tensor.type(),
                    of(shared.ranks),
                    origin(graph(shared.ranks.getFirst()), name),
                    TensorText.of(shared.tensor)));
      }
    }
  }

  private static List<Shared> shared(SortedMap<Integer, HostTensor> byRank, Set<Integer> ranks) {
    var all = new ArrayList<Shared>();
    byRank.forEach(
        (rank, tensor) -> {
          if (ranks.contains(rank)) {
            all.stream()
                .filter(other -> isSame(other.tensor, tensor))
                .findFirst()
                .orElseGet(
                    () -> {
                      var own = new Shared(tensor, new ArrayList<>());
                      all.add(own);
                      return own;
                    })
                .ranks
                .add(rank);
          }
        });
    return all;
  }

  private Optional<HostTensor> output(Session session, int rank, String name) {
    var graph = graph(rank);
    for (int i = 0; i < session.outputCount(rank); i++) {
      if (graph.outputs().get(i) instanceof Arg.Ref(Value value)
          && value.name().equals(name)
          && !isInput(graph, name)) {
        return session.output(rank, i);
      }
    }
    return Optional.empty();
  }

  private static String origin(Graph graph, String name) {
    return isInput(graph, name)
        ? "as the run found it"
        : isOutput(graph, name) ? "as the run left it" : "evaluated without a plan";
  }

  private static boolean isSame(HostTensor a, HostTensor b) {
    return a.type().equals(b.type()) && a.memory().mismatch(b.memory()) < 0;
  }

  private static String of(List<Integer> ranks) {
    return ranks.size() == 1
        ? "of rank %s".formatted(ranks.getFirst())
        : "of ranks " + ranks.stream().map(Object::toString).collect(Collectors.joining(", "));
  }
}
