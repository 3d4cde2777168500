package dev.symplan.ir.testkit;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.joint.JointGraph;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.joint.Tie;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** Cuts random programs into graphs that run one after the other. */
public final class Cuts {
  /** The names of inputs that get copies begin like this. */
  private static final String COPY = "restrided_";

  private Cuts() {}

  /**
   * {@return a program of 2 to 4 graphs, made of one} Where all ranks run the same, its graphs are
   * taken apart and tied together again, some with copies that have other strides; otherwise,
   * borders are put in.
   */
  public static Program cut(Program program, RandomGenerator random) {
    int count = 1 + random.nextInt(3);
    if (program.graphs().size() == 1) {
      var graph = program.graphs().getFirst();
      var at = random.ints(count, 0, graph.ops().size() + 1).sorted().toArray();
      if (mayBeTied(graph)) {
        return new Apart(program, graph, at).together(random);
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

  /** {@return whether one of the graphs gets a copy of a tensor, with other strides} */
  public static boolean hasCopies(Graph joint) {
    return joint.ops().stream()
        .anyMatch(
            op ->
                op.def().name().toString().equals("aten::clone")
                    && op.result().name().startsWith(COPY));
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

  /** {@return how many of some outputs, from the first one on, are not later inputs} */
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

    /** By graph and value, the type that the graph takes in place of the value's own. */
    private final List<Map<Integer, TensorType>> restrided = new ArrayList<>();

    private final ImmutableList.Builder<Tie> ties = ImmutableList.builder();

    Apart(Program program, Graph graph, int[] cuts) {
      this.program = program;
      this.graph = graph;
      this.ends = Arrays.copyOf(cuts, cuts.length + 1);
      this.ends[cuts.length] = graph.ops().size();
      this.madeIn = new int[graph.valueCount()];
    }

    /** {@return the graphs together again, with copies if some ties can have them} */
    Program together(RandomGenerator random) {
      var takes = takes();
      if (random.nextBoolean()) {
        restride(takes, random);
      }
      return JointGraph.of(programs(takes), Optional.of(ties.build()), _ -> {});
    }

    /** {@return the values that each graph takes from those before it, or as inputs} */
    private List<Set<Value>> takes() {
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
        restrided.add(new HashMap<>());
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
      return takes;
    }

    /**
     * Chooses other strides for some of what graphs take, where their ops can read it like that.
     */
    private void restride(List<Set<Value>> takes, RandomGenerator random) {
      for (int g = 1; g < ends.length; g++) {
        for (var value : takes.get(g)) {
          boolean copied =
              madeIn[value.id()] < g
                  && value.isTensor()
                  && value.tensor().numel() > 1
                  && value.tensor().rank() > 1
                  && random.nextInt(3) > 0;
          if (copied) {
            var strides = reversed(value.tensor());
            restrided.get(g).put(value.id(), value.tensor().withStrides(strides));
            if (strides.equals(value.tensor().strides()) || !canRead(g, takes)) {
              restrided.get(g).remove(value.id());
            }
          }
        }
      }
    }

    /** {@return strides of a dense tensor whose first dimension is the innermost} */
    private static ImmutableLongArray reversed(TensorType type) {
      var strides = ImmutableLongArray.builder();
      long stride = 1;
      for (long size : type.sizes().asList()) {
        strides.add(stride);
        stride *= size;
      }
      return strides.build();
    }

    /**
     * Whether a graph can be made with its strides, writes into nothing that is a copy, and hands
     * no view of one on.
     */
    private boolean canRead(int g, List<Set<Value>> takes) {
      var copies = new HashSet<Integer>(restrided.get(g).keySet());
      for (var op : ops(g)) {
        boolean reads = op.operands().stream().anyMatch(value -> copies.contains(value.id()));
        if (reads && (op.def().rule().isEmpty() || op.def().schema().mutates())) {
          return false;
        }
        if (op.infer().stream()
            .flatMap(result -> result.view().stream())
            .anyMatch(view -> copies.contains(view.of().id()))) {
          op.results().forEach(result -> copies.add(result.id()));
        }
      }
      copies.removeAll(restrided.get(g).keySet());
      boolean handsOn =
          takes.subList(g + 1, takes.size()).stream()
              .flatMap(Set::stream)
              .anyMatch(value -> copies.contains(value.id()));
      try {
        part(g, takes.get(g));
        return !handsOn;
      } catch (OpTypeException e) {
        return false;
      }
    }

    private ImmutableList<Program> programs(List<Set<Value>> takes) {
      for (int g = 0; g < ends.length; g++) {
        for (var value : takes.get(g)) {
          int from = madeIn[value.id()];
          if (from < g) {
            boolean copied = restrided.get(g).containsKey(value.id());
            var name = copied ? COPY + value.name() : value.name();
            ties.add(new Tie(from, value.name(), g, name, false, copied, Span.NONE));
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
      return programs.build();
    }

    private List<Op> ops(int g) {
      return graph.ops().subList(g == 0 ? 0 : ends[g - 1], ends[g]);
    }

    /**
     * {@return one of the graphs}
     *
     * @throws OpTypeException when an op cannot read the strides that the graph takes
     */
    private Graph part(int g, Set<Value> takes) {
      Map<Integer, Value> now = new HashMap<>();
      var inputs = ImmutableList.<Value>builder();
      for (var value : takes) {
        var other = restrided.get(g).get(value.id());
        var input =
            other == null
                ? value.withId(now.size())
                : new Value(now.size(), COPY + value.name(), other, value.span(), true);
        now.put(value.id(), input);
        inputs.add(input);
      }
      var ops = ImmutableList.<Op>builder();
      for (var op : ops(g)) {
        var types = types(op, now);
        for (int i = 0; i < op.results().size(); i++) {
          var result = op.results().get(i);
          boolean same = types.get(i).equals(result.type());
          now.put(
              result.id(),
              same
                  ? result.withId(now.size())
                  : new Value(now.size(), result.name(), types.get(i), result.span(), true));
        }
        // Not as a map of the op, which would keep what was inferred from the old types.
        ops.add(
            new Op(
                op.def(),
                args(op, now),
                op.results().stream()
                    .map(result -> now.getOrDefault(result.id(), result))
                    .collect(toImmutableList()),
                op.span(),
                op.notes()));
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

    /** Views of what has other strides have such, too; all other results stay as they are. */
    private static List<Type> types(Op op, Map<Integer, Value> now) {
      boolean changed =
          op.operands().stream()
              .anyMatch(value -> !now.getOrDefault(value.id(), value).type().equals(value.type()));
      if (!changed) {
        return op.results().stream().map(Value::type).toList();
      }
      var inferred = op.def().infer(args(op, now)).orElseThrow();
      var types = new ArrayList<Type>();
      for (int i = 0; i < inferred.size(); i++) {
        var old = op.results().get(i).type();
        types.add(inferred.get(i).allows(old) ? old : inferred.get(i).type());
      }
      return types;
    }

    private static ImmutableList<Arg> args(Op op, Map<Integer, Value> now) {
      return op.args().stream()
          .map(arg -> arg.map(value -> now.getOrDefault(value.id(), value)))
          .collect(toImmutableList());
    }
  }
}
