package dev.symplan.ir.joint;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Graphs that run one after the other, such as the forward and the backward graph of a training
 * step, as one graph. What one hands to the next by a {@link Tie} is a value inside of it, so one
 * plan says where it lies from its making to its last use.
 *
 * <p>Without ties, a graph with inputs called {@code tangents_N} is AOTAutograd's backward of the
 * graph before it: its other inputs are, in order, the last outputs of that graph. An input of any
 * other graph is the output of an earlier one that has its name.
 *
 * <p>AOTAutograd lists a tensor that is both a result for the caller and saved for the backward
 * graph twice, the latter behind the former; so a tie takes the last of a value's outputs from the
 * caller.
 */
public final class JointGraph {
  private static final OpDef AS_STRIDED = BuiltinOps.registry().get("aten::as_strided");
  private static final Pattern TANGENT = Pattern.compile("tangents_[0-9]+");

  /** The per-rank versions of one graph. */
  private record Versions(ImmutableList<Graph> graphs) {

    /** {@return the version that exactly these ranks run, or that all ranks do} */
    Optional<Graph> of(ImmutableIntArray ranks) {
      return graphs.stream()
          .filter(graph -> graph.ranks().isEmpty() || graph.ranks().equals(ranks))
          .findFirst();
    }
  }

  private JointGraph() {}

  /**
   * {@return a program of one graph, whose name is that of the first; one for each list of ranks}
   *
   * @param programs whose graphs run in this order
   * @param ties empty for those that the names give
   * @throws CompileException when there is only one graph, the ties do not fit the graphs, or the
   *     programs do not fit each other
   */
  public static Program of(
      List<Program> programs,
      Optional<ImmutableList<Tie>> ties,
      Consumer<? super Diagnostic> warnings) {
    var sequence = sequence(programs);
    if (sequence.size() < 2) {
      throw wrong(
          DiagnosticCode.BAD_OPTION,
          span(programs),
          "there is only one graph, but --together plans several",
          "give the files of all graphs, in the order in which they run");
    }
    var joint =
        rankLists(sequence).stream()
            .map(ranks -> join(sequence, ranks, ties, warnings))
            .collect(toImmutableList());
    return new Program(
        groups(programs),
        declarations(programs),
        joint,
        programs.getLast().endNotes(),
        programs.size() == 1 ? programs.getFirst().headNotes() : ImmutableList.of());
  }

  private static ImmutableList<Versions> sequence(List<Program> programs) {
    var sequence = ImmutableList.<Versions>builder();
    for (var program : programs) {
      var named = new LinkedHashMap<String, List<Graph>>();
      for (var graph : program.graphs()) {
        named.computeIfAbsent(graph.name(), _ -> new ArrayList<>()).add(graph);
      }
      named.values().forEach(graphs -> sequence.add(new Versions(ImmutableList.copyOf(graphs))));
    }
    return sequence.build();
  }

  private static Set<ImmutableIntArray> rankLists(List<Versions> sequence) {
    var lists = new LinkedHashSet<ImmutableIntArray>();
    for (var versions : sequence) {
      versions.graphs().stream().map(Graph::ranks).forEach(lists::add);
    }
    if (lists.size() > 1) {
      // Every rank is in another list.
      lists.remove(ImmutableIntArray.of());
    }
    return lists;
  }

  private static Graph join(
      List<Versions> sequence,
      ImmutableIntArray ranks,
      Optional<ImmutableList<Tie>> ties,
      Consumer<? super Diagnostic> warnings) {
    var graphs = new ArrayList<Graph>();
    for (var versions : sequence) {
      graphs.add(
          versions
              .of(ranks)
              .orElseThrow(
                  () ->
                      wrong(
                          DiagnosticCode.RANKS_DISAGREE,
                          versions.graphs().getFirst().span(),
                          "no version of graph '%s' is for exactly the ranks %s"
                              .formatted(versions.graphs().getFirst().name(), ranks),
                          "give all graphs the same lists of ranks")));
    }
    var all = ties.orElseGet(() -> found(graphs));
    for (int g = 1; g < graphs.size(); g++) {
      int later = g;
      if (all.stream().noneMatch(tie -> tie.to() == later)) {
        warnings.accept(
            Diagnostic.warning(
                DiagnosticCode.BAD_TIES,
                graphs.get(g).span(),
                "no input of this graph is tied to an earlier graph",
                "--ties FILE says which are"));
      }
    }
    return new Joining(graphs, all).join(ranks);
  }

  private static ImmutableList<Tie> found(List<Graph> graphs) {
    if (isBackward(graphs.getFirst())) {
      throw wrong(
          DiagnosticCode.BAD_TIES,
          graphs.getFirst().span(),
          "this is a backward graph, but there is no graph before it",
          "give the forward graph first, or --ties FILE");
    }
    var ties = ImmutableList.<Tie>builder();
    for (int to = 1; to < graphs.size(); to++) {
      ties.addAll(isBackward(graphs.get(to)) ? saved(graphs, to) : byName(graphs, to));
    }
    return ties.build();
  }

  private static boolean isBackward(Graph graph) {
    return graph.inputs().stream().anyMatch(input -> isCalled(TANGENT, input));
  }

  /** AOTAutograd's order: the last tensors of the forward graph, and then the tangents. */
  private static List<Tie> saved(List<Graph> graphs, int backward) {
    var outputs = graphs.get(backward - 1).outputValues();
    var inputs =
        graphs.get(backward).inputs().stream().filter(input -> !isCalled(TANGENT, input)).toList();
    if (inputs.size() > outputs.size()) {
      throw wrong(
          DiagnosticCode.BAD_TIES,
          graphs.get(backward).span(),
          "this backward graph takes %s besides tangents, but the graph before it gives %s"
              .formatted(
                  Units.count(inputs.size(), "input"), Units.count(outputs.size(), "output")),
          "give the forward graph of the same capture before it, or --ties FILE");
    }
    var ties = new ArrayList<Tie>();
    var last = outputs.subList(outputs.size() - inputs.size(), outputs.size());
    for (int i = 0; i < inputs.size(); i++) {
      var input = inputs.get(i);
      var name = last.get(i).name();
      // Passes rename tensors in one of both graphs, but do not give names to other tensors.
      if (!name.equals(input.name())
          && last.stream().anyMatch(output -> output.name().equals(input.name()))) {
        throw wrong(
            DiagnosticCode.BAD_TIES,
            input.span(),
            "the forward graph saves '%s' in the place of '%s', and the latter in another one"
                .formatted(name, input.name()),
            "--ties FILE says which inputs are whose outputs");
      }
      ties.add(new Tie(backward - 1, name, backward, input.name(), false, input.span()));
    }
    return ties;
  }

  private static List<Tie> byName(List<Graph> graphs, int to) {
    var ties = new ArrayList<Tie>();
    for (var input : graphs.get(to).inputs()) {
      for (int from = to - 1; from >= 0; from--) {
        if (graphs.get(from).outputValues().stream()
            .anyMatch(output -> output.name().equals(input.name()))) {
          ties.add(new Tie(from, input.name(), to, input.name(), false, input.span()));
          break;
        }
      }
    }
    return ties;
  }

  private static boolean isCalled(Pattern pattern, Value value) {
    return pattern.matcher(value.name()).matches();
  }

  private static ImmutableList<ProcessGroup> groups(List<Program> programs) {
    var groups = new LinkedHashMap<String, ProcessGroup>();
    for (var program : programs) {
      for (var group : program.groups()) {
        @Nullable ProcessGroup before = groups.putIfAbsent(group.name(), group);
        if (before != null && !before.equals(group)) {
          throw wrong(
              DiagnosticCode.BAD_GROUP,
              span(programs),
              "group '%s' has the ranks %s in one graph and %s in another"
                  .formatted(group.name(), before.members(), group.members()),
              "groups of one name must have the same ranks");
        }
      }
    }
    return ImmutableList.copyOf(groups.values());
  }

  private static ImmutableList<OpDef> declarations(List<Program> programs) {
    var declared = new LinkedHashMap<String, OpDef>();
    for (var program : programs) {
      for (var def : program.declarations()) {
        @Nullable OpDef before = declared.putIfAbsent(def.name().toString(), def);
        if (before != null && !before.equals(def)) {
          throw wrong(
              DiagnosticCode.DUPLICATE_NAME,
              span(programs),
              "'%s' is declared in two ways".formatted(def.name()),
              "declare it once, in a file for --declare");
        }
      }
    }
    return ImmutableList.copyOf(declared.values());
  }

  private static Span span(List<Program> programs) {
    return programs.stream()
        .flatMap(program -> program.graphs().stream())
        .map(Graph::span)
        .findFirst()
        .orElse(Span.NONE);
  }

  private static CompileException wrong(
      DiagnosticCode code, Span span, String message, String hint) {
    return new CompileException(Diagnostic.error(code, span, message, hint));
  }

  /** The graphs of some ranks. */
  private static final class Joining {
    private final List<Graph> graphs;

    /** By graph and name, the tie that says where an input comes from. */
    private final List<Map<String, Tie>> sources = new ArrayList<>();

    /** By graph and id. */
    private final List<Value[]> now = new ArrayList<>();

    private final ImmutableList.Builder<Op> ops = ImmutableList.builder();
    private final Set<String> names = new HashSet<>();
    private int nextId;

    Joining(List<Graph> graphs, List<Tie> ties) {
      this.graphs = graphs;
      for (var graph : graphs) {
        sources.add(new HashMap<>());
        now.add(new Value[graph.valueCount()]);
      }
      ties.forEach(this::add);
    }

    private void add(Tie tie) {
      if (tie.to() >= graphs.size()) {
        throw wrong(
            DiagnosticCode.BAD_TIES,
            tie.span(),
            "there is no graph %s".formatted(tie.to()),
            "there are %s, the first one is 0".formatted(Units.count(graphs.size(), "graph")));
      }
      var later = graphs.get(tie.to());
      var input = find(later.inputs(), tie.input());
      if (input.isEmpty()) {
        throw wrong(
            DiagnosticCode.BAD_TIES,
            tie.span(),
            "graph %s has no input '%s'".formatted(tie.to(), tie.input()),
            "inputs: " + names(later.inputs()));
      }
      var value = given(tie);
      if (!fits(value.type(), input.get().type())) {
        throw wrong(
            DiagnosticCode.BAD_TIES,
            tie.span(),
            "'%s' is %s in graph %s, but '%s' is %s in graph %s"
                .formatted(
                    tie.value(),
                    value.type(),
                    tie.from(),
                    tie.input(),
                    input.get().type(),
                    tie.to()),
            "tied tensors have the same type; are these graphs of one capture?");
      }
      if (sources.get(tie.to()).putIfAbsent(tie.input(), tie) != null) {
        throw wrong(
            DiagnosticCode.BAD_TIES,
            tie.span(),
            "input '%s' of graph %s is tied twice".formatted(tie.input(), tie.to()),
            "an input is one tensor");
      }
    }

    private Value given(Tie tie) {
      var earlier = graphs.get(tie.from());
      var all = Iterables.concat(earlier.outputValues(), earlier.inputs());
      return find(all, tie.value())
          .orElseThrow(
              () ->
                  wrong(
                      DiagnosticCode.BAD_TIES,
                      tie.span(),
                      "graph %s has no output or input '%s'".formatted(tie.from(), tie.value()),
                      "outputs: " + names(earlier.outputValues())));
    }

    private static Optional<Value> find(Iterable<Value> values, String name) {
      for (var value : values) {
        if (value.name().equals(name)) {
          return Optional.of(value);
        }
      }
      return Optional.empty();
    }

    private static String names(List<Value> values) {
      var some = values.stream().limit(8).map(Value::name).toList();
      return String.join(", ", some) + (values.size() > some.size() ? ", …" : "");
    }

    /** The same elements at the same places, wherever an input would have to live. */
    private static boolean fits(Type given, Type taken) {
      return given instanceof TensorType tensor && taken instanceof TensorType input
          ? input.space() == MemorySpace.ANY
              && tensor.dtype() == input.dtype()
              && tensor.sizes().equals(input.sizes())
              && IntStream.range(0, tensor.rank())
                  .allMatch(
                      dim ->
                          tensor.size(dim) == 1
                              || tensor.strides().get(dim) == input.strides().get(dim))
          : given.equals(taken);
    }

    Graph join(ImmutableIntArray ranks) {
      var inputs = ImmutableList.<Value>builder();
      for (int g = 0; g < graphs.size(); g++) {
        for (var input : graphs.get(g).inputs()) {
          if (!sources.get(g).containsKey(input.name())) {
            now.get(g)[input.id()] = define(input, input.name());
            inputs.add(now.get(g)[input.id()]);
          }
        }
      }
      var outputs = ImmutableList.<Arg>builder();
      for (int g = 0; g < graphs.size(); g++) {
        var own = now.get(g);
        sources.get(g).values().forEach(this::handOn);
        for (var op : graphs.get(g).ops()) {
          op.results().forEach(result -> own[result.id()] = define(result, result.name()));
          ops.add(op.map(value -> own[value.id()]));
        }
        outputsForCaller(g).forEach(output -> outputs.add(output.map(value -> own[value.id()])));
      }
      var first = graphs.getFirst();
      return new Graph(
          first.name(),
          ranks,
          inputs.build(),
          ops.build(),
          outputs.build(),
          nextId,
          first.span(),
          first.notes(),
          graphs.getLast().endNotes());
    }

    private Value define(Value value, String wanted) {
      var name = wanted;
      for (int i = 1; !name.isEmpty() && !names.add(name); i++) {
        name = wanted + "_" + i;
      }
      return new Value(nextId++, name, value.type(), value.span(), value.annotated());
    }

    private void handOn(Tie tie) {
      var input = find(graphs.get(tie.to()).inputs(), tie.input()).orElseThrow();
      var value = now.get(tie.from())[given(tie).id()];
      now.get(tie.to())[input.id()] =
          value.type() instanceof TensorType type
                  && !type.strides().equals(input.tensor().strides())
              ? restrided(value, input)
              : value;
    }

    /** A dimension of one element may have any stride, but ops see the one that they were given. */
    private Value restrided(Value value, Value input) {
      var seen = define(input, input.name());
      ops.add(
          new Op(
              AS_STRIDED,
              ImmutableList.of(
                  new Arg.Ref(value),
                  Arg.Seq.of(input.tensor().sizes().stream()),
                  Arg.Seq.of(input.tensor().strides().stream()),
                  Arg.None.NONE),
              ImmutableList.of(seen),
              input.span(),
              Notes.NONE));
      return seen;
    }

    private List<Arg> outputsForCaller(int g) {
      var outputs = new ArrayList<>(graphs.get(g).outputs());
      sources.stream()
          .flatMap(own -> own.values().stream())
          .filter(tie -> tie.from() == g && !tie.kept())
          .map(this::given)
          .distinct()
          .map(Arg.Ref::new)
          .map(outputs::lastIndexOf)
          .filter(last -> last >= 0)
          .sorted(Comparator.reverseOrder())
          .forEach(last -> outputs.remove(last.intValue()));
      return outputs;
    }
  }
}
