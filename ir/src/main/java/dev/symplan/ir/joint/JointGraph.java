package dev.symplan.ir.joint;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Graphs that run one after the other, such as the forward and the backward graph of a training
 * step, as one graph. What one hands to the next by a {@link Tie} is a value inside of it, so one
 * plan says where it lies from its making to its last use.
 *
 * <p>Without ties, names and order give them ({@link FoundTies}).
 *
 * <p>An op {@code symplan::border} stands between two graphs ({@link ProgramGraph}).
 *
 * <p>AOTAutograd lists a tensor that is both a result for the caller and saved for the backward
 * graph twice, the latter after the former; so a tie takes the last of a value's outputs from the
 * caller.
 */
public final class JointGraph {
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
    for (var program : programs) {
      program.graphs().forEach(JointGraph::checkSingle);
    }
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

  private static void checkSingle(Graph graph) {
    graph.ops().stream()
        .filter(ProgramGraph::isBorder)
        .findFirst()
        .ifPresent(
            border -> {
              throw wrong(
                  DiagnosticCode.BAD_TIES,
                  border.span(),
                  "graph '%s' consists of several graphs already".formatted(graph.name()),
                  "compile it without --together, or give the graphs that it was made of");
            });
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
    var all = ties.orElseGet(() -> FoundTies.of(graphs));
    for (int g = 1; g < graphs.size(); g++) {
      int later = g;
      if (all.stream().noneMatch(tie -> tie.to() == later)) {
        warnings.accept(
            Diagnostic.warning(
                DiagnosticCode.BAD_TIES,
                graphs.get(g).span(),
                "no input of this graph is tied to an earlier graph",
                "name the tied inputs with --ties FILE"));
      }
    }
    return new Joining(new TiedGraphs(graphs, all)).join(ranks);
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
}
