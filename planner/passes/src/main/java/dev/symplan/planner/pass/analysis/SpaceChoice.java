package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.options.CompileOptions;
import java.util.List;
import java.util.stream.Stream;

/**
 * The memory that the caller wants for inputs and outputs: by name, by annotation, or by default,
 * in this order.
 *
 * @param outputs as the source has them: normalizing may put other values there
 */
public record SpaceChoice(CompileOptions options, ImmutableList<Arg> outputs) {

  public static SpaceChoice of(CompileOptions options, Graph source) {
    return new SpaceChoice(options, source.outputs());
  }

  /**
   * Refuses options about names that the graphs do not have.
   *
   * @throws CompileException when a name is neither an input nor an output, a donated or replicated
   *     one is not an input, or one is in the host's memory
   */
  public static void checkNames(CompileOptions options, List<Graph> graphs) {
    for (var name : options.replicated()) {
      if (graphs.stream().noneMatch(graph -> isInput(graph, name))) {
        throw wrong(
            graphs, "'%s' is not an input of '%s'", name, "--replicated takes names of inputs");
      }
    }
    for (var name : options.foldWeights()) {
      if (graphs.stream()
          .flatMap(graph -> graph.inputs().stream())
          .noneMatch(input -> CompileOptions.isCalled(name, input.name()))) {
        throw wrong(
            graphs, "'%s' is not an input of '%s'", name, "--fold-weights takes names of inputs");
      }
    }
    options
        .spaces()
        .forEach(
            (name, space) -> {
              boolean input = graphs.stream().anyMatch(graph -> isInput(graph, name));
              if (!input && graphs.stream().noneMatch(graph -> isOutput(graph, name))) {
                throw wrong(graphs, "'%s' is neither an input nor an output of '%s'", name, "");
              } else if (!input && space == MemorySpace.DONATED) {
                throw wrong(
                    graphs, "'%s' is not an input of '%s'", name, "only inputs can be donated");
              } else if (graphs.stream().anyMatch(graph -> isInHost(graph, name))) {
                throw wrong(
                    graphs,
                    "'%s' of '%s' is in the host's memory",
                    name,
                    "move it with symplan::offload or symplan::reload, and choose the space of"
                        + " that");
              }
            });
  }

  private static boolean isInHost(Graph graph, String name) {
    return Stream.concat(graph.inputs().stream(), graph.outputValues().stream())
        .filter(value -> value.name().equals(name) && value.isTensor())
        .anyMatch(value -> value.tensor().space() == MemorySpace.HOST);
  }

  private static CompileException wrong(
      List<Graph> graphs, String message, String name, String hint) {
    var graph = graphs.getFirst();
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_OPTION, graph.span(), message.formatted(name, graph.name()), hint));
  }

  private static boolean isInput(Graph graph, String name) {
    return graph.inputs().stream().anyMatch(value -> value.name().equals(name));
  }

  private static boolean isOutput(Graph graph, String name) {
    return graph.outputs().stream()
        .anyMatch(output -> output instanceof Arg.Ref(var value) && value.name().equals(name));
  }

  public MemorySpace input(Value value) {
    return choose(value, options.inputs());
  }

  /** {@return never {@code ANY}: {@code LOCAL} stands for "planned, in whichever arena"} */
  public MemorySpace output(int index) {
    var space =
        outputs.get(index) instanceof Arg.Ref(Value value)
            ? choose(value, options.outputs())
            : MemorySpace.LOCAL;
    return space == MemorySpace.ANY || space == MemorySpace.DONATED ? MemorySpace.LOCAL : space;
  }

  /** {@return the type of an input, which says whether it is donated} */
  public Type inputType(Value value) {
    if (!value.isTensor()) {
      return value.type();
    }
    boolean donated = input(value) == MemorySpace.DONATED;
    var tensor = value.tensor();
    return donated == (tensor.space() == MemorySpace.DONATED)
        ? tensor
        : tensor.withSpace(donated ? MemorySpace.DONATED : MemorySpace.ANY);
  }

  private MemorySpace choose(Value value, MemorySpace otherwise) {
    if (value.isTensor() && value.tensor().space() == MemorySpace.HOST) {
      // The planner has decided, for lack of memory.
      return MemorySpace.HOST;
    }
    var named = options.spaces().get(value.name());
    if (named != null) {
      return named;
    }
    var annotated = value.isTensor() ? value.tensor().space() : MemorySpace.ANY;
    return annotated == MemorySpace.ANY ? otherwise : annotated;
  }
}
