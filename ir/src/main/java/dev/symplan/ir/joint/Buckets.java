package dev.symplan.ir.joint;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.math.LongMath;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphPrinter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * Graphs with a symbolic size as one program, which has a version of them for each of a few values:
 * its buckets. The version for 128 of a graph {@code prefill} with a size {@code s} is {@code
 * prefill_s_128}, and so are its inputs called whose types depend on the size.
 *
 * <p>An input of one type in all versions is one tensor. A graph without the size has one version.
 * Graphs hand nothing on but inputs, so that any version can run at any time.
 */
public final class Buckets {

  /** One graph, and what becomes of it. */
  private static final class Source {
    final ImmutableList<Program> versions;

    /** The position of the first version in the program. */
    final int first;

    Source(ImmutableList<Program> versions, int first) {
      this.versions = versions;
      this.first = first;
    }

    boolean varies() {
      return versions.size() > 1;
    }

    Graph graph(int version) {
      return versions.get(version).graphs().getFirst();
    }

    /** {@return an input of a version; a graph without the size has one for all values} */
    Optional<Value> input(int version, String name) {
      return TiedGraphs.find(graph(varies() ? version : 0).inputs(), name);
    }

    /** Whether an input has the same type in all versions. */
    boolean isFixed(Value input) {
      return versions.stream()
          .allMatch(
              version ->
                  version.graphs().getFirst().inputs().stream()
                      .anyMatch(
                          other ->
                              other.name().equals(input.name())
                                  && other.type().equals(input.type())));
    }
  }

  private final String size;
  private final ImmutableList<Long> values;
  private final List<Source> sources = new ArrayList<>();

  private Buckets(String size, ImmutableList<Long> values) {
    this.size = size;
    this.values = values;
  }

  /**
   * {@return the powers of two in a range, and its last value, ascending}
   *
   * @param first at least 1, and at most {@code last}
   */
  public static ImmutableList<Long> powersOfTwo(long first, long last) {
    var values = ImmutableList.<Long>builder();
    for (long value = LongMath.ceilingPowerOfTwo(first); value < last; value *= 2) {
      values.add(value);
    }
    return values.add(last).build();
  }

  /**
   * {@return a program of one graph, as {@link JointGraph} makes it}
   *
   * @param size the name of the symbolic size
   * @param values of the size, ascending
   * @param read gives the programs, in order, for a value of the size
   * @param ties between inputs of the graphs, which count each graph once
   * @throws CompileException when no graph has the size, or the ties do not fit the graphs
   */
  public static Program of(
      String size,
      ImmutableList<Long> values,
      Function<Long, List<Program>> read,
      ImmutableList<Tie> ties,
      Consumer<? super Diagnostic> warnings) {
    var buckets = new Buckets(size, values);
    buckets.readAll(read);
    return buckets.join(ties, warnings);
  }

  private void readAll(Function<Long, List<Program>> read) {
    var byValue = values.stream().map(value -> graphs(read.apply(value))).toList();
    int next = 0;
    for (int g = 0; g < byValue.getFirst().size(); g++) {
      int position = g;
      var all = byValue.stream().map(graphs -> graphs.get(position)).collect(toImmutableList());
      var versions =
          all.stream().map(Buckets::text).distinct().count() == 1 ? all.subList(0, 1) : all;
      sources.add(new Source(versions, next));
      next += versions.size();
    }
    if (sources.stream().noneMatch(Source::varies)) {
      throw wrong(
          sources.getFirst().graph(0).span(),
          "no graph has the size '%s'".formatted(size),
          "--buckets takes the name of a symbolic size, such as s77 in Sym(s77)");
    }
  }

  /** {@return programs of one graph each, in their order} */
  private static ImmutableList<Program> graphs(List<Program> programs) {
    var graphs = ImmutableList.<Program>builder();
    for (var program : programs) {
      var named = new LinkedHashMap<String, List<Graph>>();
      for (var graph : program.graphs()) {
        named.computeIfAbsent(graph.name(), _ -> new ArrayList<>()).add(graph);
      }
      named.values().forEach(ofRanks -> graphs.add(with(program, ofRanks)));
    }
    return graphs.build();
  }

  private static Program with(Program program, List<Graph> graphs) {
    return new Program(
        program.groups(), program.declarations(), ImmutableList.copyOf(graphs), Notes.NONE);
  }

  /** Comments give the sizes that a graph was read with. */
  private static String text(Program program) {
    return GraphPrinter.print(
        with(
            program,
            program.graphs().stream()
                .map(
                    graph ->
                        new Graph(
                            graph.name(),
                            graph.ranks(),
                            graph.inputs(),
                            graph.ops(),
                            graph.outputs(),
                            graph.valueCount(),
                            graph.span(),
                            Notes.NONE,
                            Notes.NONE))
                .toList()));
  }

  private Program join(ImmutableList<Tie> ties, Consumer<? super Diagnostic> warnings) {
    var given = new ArrayList<Map<String, Tie>>();
    sources.forEach(_ -> given.add(new HashMap<>()));
    for (var tie : ties) {
      check(tie);
      if (given.get(tie.to()).put(tie.input(), tie) != null) {
        throw TiedGraphs.twice(tie);
      }
    }
    var programs = new ArrayList<Program>();
    var all = ImmutableList.<Tie>builder();
    for (int g = 0; g < sources.size(); g++) {
      var source = sources.get(g);
      for (int version = 0; version < source.versions.size(); version++) {
        programs.add(named(source, version));
        all.addAll(ties(source, version, given.get(g)));
      }
    }
    return JointGraph.of(programs, Optional.of(all.build()), warnings);
  }

  /** Errors count the graphs as the ties do, not as the program of all versions does. */
  private void check(Tie tie) {
    if (tie.to() >= sources.size()) {
      throw wrong(
          tie.span(),
          "graph %s does not exist".formatted(tie.to()),
          "there are %s, counted from 0".formatted(sources.size()));
    }
    var from = sources.get(tie.from());
    var to = sources.get(tie.to());
    if (from.input(0, tie.value()).isEmpty()) {
      throw wrong(
          tie.span(),
          "graph %s has no input '%s'".formatted(tie.from(), tie.value()),
          "with --buckets, graphs share inputs, and hand nothing on");
    }
    if (to.input(0, tie.input()).isEmpty()) {
      throw TiedGraphs.noInput(tie, to.graph(0));
    }
    for (int version = 0; version < values.size(); version++) {
      var given = from.input(version, tie.value()).orElseThrow();
      var taken = to.input(version, tie.input()).orElseThrow();
      TiedGraphs.checkTypes(tie, given.type(), taken.type());
    }
  }

  private List<Tie> ties(Source source, int version, Map<String, Tie> given) {
    var ties = new ArrayList<Tie>();
    for (var input : source.graph(version).inputs()) {
      var tie = Optional.ofNullable(given.get(input.name()));
      if (tie.isPresent()) {
        var from = sources.get(tie.get().from());
        int other = from.varies() && source.varies() ? version : 0;
        ties.add(
            tie(
                from.first + other,
                name(from, other, tie.get().value()),
                source,
                version,
                input,
                tie.get().copied(),
                tie.get().span()));
      } else if (version > 0 && input.isTensor() && source.isFixed(input)) {
        ties.add(tie(source.first, input.name(), source, version, input, false, input.span()));
      }
    }
    return ties;
  }

  private Tie tie(
      int from, String value, Source to, int version, Value input, boolean copied, Span span) {
    var name = name(to, version, input.name());
    return new Tie(from, value, to.first + version, name, false, copied, span);
  }

  private String suffix(int version) {
    return "_%s_%s".formatted(size, values.get(version));
  }

  /** {@return the name of an input in a version} */
  private String name(Source source, int version, String input) {
    return source.varies()
            && source.graph(version).inputs().stream()
                .anyMatch(own -> own.name().equals(input) && !source.isFixed(own))
        ? input + suffix(version)
        : input;
  }

  private Program named(Source source, int version) {
    var program = source.versions.get(version);
    return source.varies()
        ? with(
            program, program.graphs().stream().map(graph -> named(graph, source, version)).toList())
        : program;
  }

  private Graph named(Graph graph, Source source, int version) {
    var inputs =
        graph.inputs().stream()
            .map(
                input ->
                    new Value(
                        input.id(),
                        name(source, version, input.name()),
                        input.type(),
                        input.span(),
                        input.annotated()))
            .collect(toImmutableList());
    // Inputs have the first ids.
    UnaryOperator<Value> named =
        value -> value.id() < inputs.size() ? inputs.get(value.id()) : value;
    return new Graph(
        graph.name() + suffix(version),
        graph.ranks(),
        inputs,
        graph.ops().stream().map(op -> op.map(named)).collect(toImmutableList()),
        graph.outputs().stream().map(output -> output.map(named)).collect(toImmutableList()),
        graph.valueCount(),
        graph.span(),
        graph.notes(),
        graph.endNotes());
  }

  private static CompileException wrong(Span span, String message, String hint) {
    return new CompileException(Diagnostic.error(DiagnosticCode.BAD_TIES, span, message, hint));
  }
}
