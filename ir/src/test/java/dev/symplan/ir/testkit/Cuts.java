package dev.symplan.ir.testkit;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.joint.JointGraph;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.joint.Tie;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** Cuts random programs into graphs that run one after the other. */
public final class Cuts {
  private Cuts() {}

  /**
   * {@return a program of 2 to 4 graphs, made of one} Where all ranks run the same, its graphs are
   * taken apart and tied together again; otherwise, borders are put in.
   */
  public static Program cut(Program program, RandomGenerator random) {
    int count = 1 + random.nextInt(3);
    if (program.graphs().size() == 1) {
      var graph = program.graphs().getFirst();
      var at = random.ints(count, 0, graph.ops().size() + 1).sorted().toArray();
      if (mayBeTied(graph)) {
        return new Apart(program, graph, at).together();
      }
      return withGraphs(
          program, ImmutableList.of(bordered(graph, at, List.of(graph), List.of(at))));
    }
    int collectives = collectives(program.graphs().getFirst()).size();
    var behind = random.ints(count, 0, collectives + 1).sorted().toArray();
    var places = new ArrayList<int[]>();
    for (var graph : program.graphs()) {
      places.add(places(graph, behind, random));
    }
    return withGraphs(
        program,
        IntStream.range(0, places.size())
            .mapToObj(
                i -> bordered(program.graphs().get(i), places.get(i), program.graphs(), places))
            .collect(toImmutableList()));
  }

  private static Program withGraphs(Program program, ImmutableList<Graph> graphs) {
    return new Program(
        program.groups(), program.declarations(), graphs, program.endNotes(), program.headNotes());
  }

  private static List<Integer> collectives(Graph graph) {
    return IntStream.range(0, graph.ops().size())
        .filter(op -> graph.ops().get(op).def().collective().isPresent())
        .boxed()
        .toList();
  }

  /** {@return positions in a graph, each after so many collectives} */
  private static int[] places(Graph graph, int[] behind, RandomGenerator random) {
    var collectives = collectives(graph);
    var places = new int[behind.length];
    for (int i = 0; i < behind.length; i++) {
      int from = behind[i] == 0 ? 0 : collectives.get(behind[i] - 1) + 1;
      int to = behind[i] == collectives.size() ? graph.ops().size() : collectives.get(behind[i]);
      places[i] = from + random.nextInt(to - from + 1);
    }
    Arrays.sort(places);
    return places;
  }

  /** All versions get borders with the same counts: what none takes or makes later. */
  private static Graph bordered(Graph graph, int[] at, List<Graph> versions, List<int[]> places) {
    var ops = new ArrayList<Op>();
    for (int i = 0; i <= graph.ops().size(); i++) {
      for (int border = 0; border < at.length; border++) {
        if (at[border] == i) {
          int inputs = 0;
          int outputs = Integer.MAX_VALUE;
          for (int v = 0; v < versions.size(); v++) {
            inputs = Math.max(inputs, inputsBefore(versions.get(v), places.get(v)[border]));
            outputs = Math.min(outputs, outputsBefore(versions.get(v), places.get(v)[border]));
          }
          outputs = Math.min(outputs, outputsWithin(versions, inputs, outputs));
          ops.add(ProgramGraph.border("graph" + (border + 1), inputs, outputs, Span.NONE));
        }
      }
      if (i < graph.ops().size()) {
        ops.add(graph.ops().get(i));
      }
    }
    return graph.withOps(ops);
  }

  /** {@return one more than the last input that ops before a place take} */
  private static int inputsBefore(Graph graph, int place) {
    return graph.ops().subList(0, place).stream()
        .flatMap(op -> op.operands().stream())
        .mapToInt(value -> graph.inputs().indexOf(value) + 1)
        .max()
        .orElse(0);
  }

  /** {@return how many outputs, from the first one on, are there at a place} */
  private static int outputsBefore(Graph graph, int place) {
    var later =
        graph.ops().subList(place, graph.ops().size()).stream()
            .flatMap(op -> op.results().stream())
            .toList();
    int count = 0;
    while (count < graph.outputs().size()
        && graph.outputs().get(count).operands().stream().noneMatch(later::contains)) {
      count++;
    }
    return count;
  }

  /** {@return how many of some outputs, from the first one on, are no later inputs} */
  private static int outputsWithin(List<Graph> versions, int inputs, int outputs) {
    int count = outputs;
    for (var graph : versions) {
      var later = graph.inputs().subList(inputs, graph.inputs().size());
      for (int i = 0; i < count; i++) {
        if (graph.outputs().get(i).operands().stream().anyMatch(later::contains)) {
          count = i;
        }
      }
    }
    return count;
  }

  /** Whether all that may cross a border has a name and no place of its own. */
  private static boolean mayBeTied(Graph graph) {
    return graph.values().stream()
        .allMatch(
            value ->
                !value.name().isEmpty()
                    && (!(value.type() instanceof TensorType type)
                        || type.space() == MemorySpace.ANY));
  }

  /** The graphs that a graph is cut into. */
  private static final class Apart {
    private final Program program;
    private final Graph graph;
    private final int[] ends;
    private final int[] madeIn;
    private final List<Set<Value>> given = new ArrayList<>();
    private final ImmutableList.Builder<Tie> ties = ImmutableList.builder();

    Apart(Program program, Graph graph, int[] cuts) {
      this.program = program;
      this.graph = graph;
      this.ends = Arrays.copyOf(cuts, cuts.length + 1);
      this.ends[cuts.length] = graph.ops().size();
      this.madeIn = new int[graph.valueCount()];
    }

    Program together() {
      var takes = new ArrayList<Set<Value>>();
      var inputs = new LinkedHashSet<>(graph.inputs());
      for (int g = 0; g < ends.length; g++) {
        var own = new LinkedHashSet<Value>();
        var made = new LinkedHashSet<Value>();
        for (var op : ops(g)) {
          for (var value : op.operands()) {
            if (!made.contains(value)) {
              own.add(value);
            }
          }
          made.addAll(op.results());
          int index = g;
          op.results().forEach(result -> madeIn[result.id()] = index);
        }
        takes.add(own);
        given.add(new LinkedHashSet<>());
      }
      for (int g = 0; g < ends.length; g++) {
        for (var value : takes.get(g)) {
          if (inputs.remove(value)) {
            madeIn[value.id()] = g;
          }
        }
      }
      // A tensor that nothing takes is an input of the first graph.
      takes.getFirst().addAll(inputs);
      for (int g = 0; g < ends.length; g++) {
        for (var value : takes.get(g)) {
          int from = madeIn[value.id()];
          if (from < g) {
            ties.add(new Tie(from, value.name(), g, value.name(), false, false, Span.NONE));
            if (!graph.inputs().contains(value)) {
              given.get(from).add(value);
            }
          }
        }
      }
      var programs = ImmutableList.<Program>builder();
      for (int g = 0; g < ends.length; g++) {
        programs.add(
            new Program(
                program.groups(),
                program.declarations(),
                ImmutableList.of(part(g, takes.get(g))),
                Notes.NONE));
      }
      return JointGraph.of(programs.build(), Optional.of(ties.build()), _ -> {});
    }

    private List<Op> ops(int g) {
      return graph.ops().subList(g == 0 ? 0 : ends[g - 1], ends[g]);
    }

    private Graph part(int g, Set<Value> takes) {
      Map<Integer, Value> now = new HashMap<>();
      var inputs = ImmutableList.<Value>builder();
      for (var value : takes) {
        var input = value.withId(now.size());
        now.put(value.id(), input);
        inputs.add(input);
      }
      var ops = ImmutableList.<Op>builder();
      for (var op : ops(g)) {
        op.results().forEach(result -> now.put(result.id(), result.withId(now.size())));
        ops.add(op.map(value -> now.getOrDefault(value.id(), value)));
      }
      var outputs = ImmutableList.<Arg>builder();
      for (var output : graph.outputs()) {
        var values = output.operands();
        int from = values.isEmpty() ? 0 : madeIn[values.getFirst().id()];
        if (from == g) {
          outputs.add(output.map(value -> now.getOrDefault(value.id(), value)));
        }
      }
      given.get(g).forEach(value -> outputs.add(new Arg.Ref(now.getOrDefault(value.id(), value))));
      return new Graph(
          "graph" + g,
          graph.ranks(),
          inputs.build(),
          ops.build(),
          outputs.build(),
          now.size(),
          Span.NONE,
          Notes.NONE,
          Notes.NONE);
    }
  }
}
