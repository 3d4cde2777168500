package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.options.CompileOptions;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/** Chooses the graph of a program that each rank runs. */
public final class GraphChoice {
  private GraphChoice() {}

  /** {@return the graph of each rank} */
  public static List<Graph> of(Program program, CompileOptions options) {
    if (program.graphs().isEmpty()) {
      throw wrong(DiagnosticCode.BAD_OPTION, Span.NONE, "the file contains no graph", "");
    }
    var name = options.graph().isEmpty() ? onlyName(program) : options.graph();
    var named = program.graphs().stream().filter(g -> g.name().equals(name)).toList();
    if (named.isEmpty()) {
      throw wrong(
          DiagnosticCode.BAD_OPTION,
          Span.ofFile(program.graphs().getFirst().span().file()),
          "no graph has the name '%s'".formatted(name),
          "graphs: " + names(program));
    }
    int ranks = statedRanks(options).orElseGet(() -> impliedRanks(program, named));
    var running = running(named, ranks);
    for (int rank = 0; rank < ranks; rank++) {
      int graphs = running.get(rank).size();
      if (graphs != 1) {
        throw wrong(
            DiagnosticCode.RANKS_DISAGREE,
            named.getFirst().span(),
            graphs == 0
                ? "no graph called '%s' runs on rank %s".formatted(name, rank)
                : "%s graphs called '%s' run on rank %s".formatted(graphs, name, rank),
            "each rank runs exactly one: graph %s(…) ranks [0, 1] {".formatted(name));
      }
    }
    return running.stream().map(List::getFirst).toList();
  }

  /** {@return for each rank, the graphs that it runs} */
  private static List<List<Graph>> running(List<Graph> graphs, int ranks) {
    var running = new ArrayList<List<Graph>>();
    for (int rank = 0; rank < ranks; rank++) {
      running.add(new ArrayList<>(1));
    }
    for (var graph : graphs) {
      var own = graph.ranks().isEmpty() ? IntStream.range(0, ranks) : graph.ranks().stream();
      own.filter(rank -> rank < ranks).forEach(rank -> running.get(rank).add(graph));
    }
    return running;
  }

  /**
   * {@return the different graphs among those of all ranks, each once, in order}
   *
   * <p>By identity: graphs of one program differ at least in the ranks that run them, and comparing
   * all that they hold takes longer than planning them.
   */
  public static ImmutableList<Graph> distinct(List<Graph> graphOfRank) {
    var seen = Sets.<Graph>newIdentityHashSet();
    return graphOfRank.stream().filter(seen::add).collect(ImmutableList.toImmutableList());
  }

  /** {@return for each rank, the position of its graph among the different ones} */
  public static ImmutableIntArray indices(List<Graph> graphOfRank) {
    var positions = new IdentityHashMap<Graph, Integer>();
    distinct(graphOfRank).forEach(graph -> positions.put(graph, positions.size()));
    return ImmutableIntArray.copyOf(graphOfRank.stream().mapToInt(positions::get));
  }

  private static String onlyName(Program program) {
    var names = names(program);
    if (names.size() > 1) {
      throw wrong(
          DiagnosticCode.BAD_OPTION,
          program.graphs().getFirst().span(),
          "the file has several graphs",
          "choose one with --graph: " + String.join(", ", names));
    }
    return names.getFirst();
  }

  private static List<String> names(Program program) {
    return program.graphs().stream().map(Graph::name).distinct().toList();
  }

  private static OptionalInt statedRanks(CompileOptions options) {
    int ranks = options.ranks() > 0 ? options.ranks() : options.hosts().map(Hosts::ranks).orElse(0);
    return ranks > 0 ? OptionalInt.of(ranks) : OptionalInt.empty();
  }

  private static int impliedRanks(Program program, List<Graph> named) {
    int largest = 0;
    for (var group : program.groups()) {
      largest = Math.max(largest, group.maxRank());
    }
    for (var graph : named) {
      largest = Math.max(largest, graph.ranks().stream().max().orElse(0));
    }
    return largest + 1;
  }

  private static CompileException wrong(
      DiagnosticCode code, Span span, String message, String hint) {
    return new CompileException(Diagnostic.error(code, span, message, hint));
  }
}
