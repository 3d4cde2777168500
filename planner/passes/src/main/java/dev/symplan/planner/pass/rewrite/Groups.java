package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Meetings;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphChoice;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Checks that the groups of a program's collectives fit the ranks that run them. */
public final class Groups {
  private final ImmutableMap<String, ProcessGroup> byName;
  private final DiagnosticSink sink;

  /** A mistake in a group is reported once, not for each collective of it. */
  private final Set<String> wrongGroups = new HashSet<>();

  private Groups(ImmutableList<ProcessGroup> groups, DiagnosticSink sink) {
    this.byName = Maps.uniqueIndex(groups, ProcessGroup::name);
    this.sink = sink;
  }

  /** {@return the program, with the group of all ranks where a collective states no other} */
  public static Program withWorld(Program program, List<Graph> graphOfRank) {
    boolean declared =
        program.groups().stream().anyMatch(group -> group.name().equals(CollectiveSpec.WORLD));
    boolean used =
        GraphChoice.distinct(graphOfRank).stream()
            .anyMatch(graph -> !Parallel.filter(graph.ops(), Groups::takesWorld).isEmpty());
    if (declared || !used) {
      return program;
    }
    var groups =
        ImmutableList.<ProcessGroup>builder()
            .addAll(program.groups())
            .add(ProcessGroup.world(CollectiveSpec.WORLD, graphOfRank.size()))
            .build();
    return new Program(groups, program.declarations(), program.graphs(), program.endNotes());
  }

  private static boolean takesWorld(Op op) {
    return op.def().collective().filter(spec -> spec.group().isEmpty()).isPresent();
  }

  /**
   * Checks that the ranks of all groups exist, before anything asks where they are.
   *
   * @throws CompileException when some do not
   */
  public static void checkRanks(ImmutableList<ProcessGroup> groups, List<Graph> graphOfRank) {
    var sink = new DiagnosticSink();
    var checker = new Groups(groups, sink);
    for (var group : groups) {
      if (group.maxRank() >= graphOfRank.size()) {
        checker.report(
            Span.ofFile(graphOfRank.getFirst().span().file()),
            "group '%s' names rank %s, but the number of ranks is %s"
                .formatted(group.name(), group.maxRank(), graphOfRank.size()),
            "give --ranks %s, or name only ranks 0 to %s in group %s"
                .formatted(group.maxRank() + 1, graphOfRank.size() - 1, group.name()));
      }
    }
    sink.throwIfErrors();
  }

  /** Reports what does not fit. */
  public static void check(
      ImmutableList<ProcessGroup> groups, List<Graph> graphOfRank, DiagnosticSink sink) {
    var checker = new Groups(groups, sink);
    for (var graph : GraphChoice.distinct(graphOfRank)) {
      for (var collective : Collective.allOf(graph.ops())) {
        checker.check(collective, graph, graphOfRank);
      }
    }
    if (!sink.hasErrors()) {
      checker.checkPeers(graphOfRank);
    }
  }

  /** Ranks that meet in a collective must all mean to meet there. */
  private void checkPeers(List<Graph> graphOfRank) {
    var distinct = GraphChoice.distinct(graphOfRank);
    if (distinct.size() == 1) {
      return;
    }
    var ofGraph = distinct.stream().map(graph -> Collective.allOf(graph.ops())).toList();
    var graphs = GraphChoice.indices(graphOfRank);
    for (var meetings : Meetings.of(byName.values().asList(), distinct)) {
      var checked = new HashSet<List<String>>();
      for (int i = 0; i < meetings.ofFirst().length(); i++) {
        var met = ImmutableMap.<Integer, Collective>builder();
        for (var own : meetings.positions().entrySet()) {
          met.put(own.getKey(), ofGraph.get(own.getKey()).get(own.getValue().get(i)));
        }
        var collectives = met.buildOrThrow();
        if (checked.add(collectives.values().stream().map(Collective::group).toList())
            && !peersAgree(collectives, graphs)) {
          return;
        }
      }
    }
  }

  /**
   * @param collectives by graph, those that meet
   */
  private boolean peersAgree(
      ImmutableMap<Integer, Collective> collectives, ImmutableIntArray graphs) {
    // Where all ranks of a part mean that part, one of them stands for all.
    var agreed = Sets.<ImmutableIntArray>newIdentityHashSet();
    for (int rank = 0; rank < graphs.length(); rank++) {
      @Nullable Collective own = collectives.get(graphs.get(rank));
      if (own == null) {
        continue;
      }
      var ranks = part(own.group(), rank);
      if (!agreed.add(ranks)) {
        continue;
      }
      for (int peer : ranks.asList()) {
        var other = Objects.requireNonNull(collectives.get(graphs.get(peer)));
        var theirs = part(other.group(), peer);
        if (!theirs.equals(ranks)) {
          report(
              own,
              "'%s' of rank %s is for the ranks %s, but on rank %s it is for the ranks %s"
                  .formatted(own.name(), rank, ranks, peer, theirs),
              "give the collective the same ranks on all of them");
          return false;
        }
      }
    }
    return true;
  }

  private ImmutableIntArray part(String group, int rank) {
    var declared = Objects.requireNonNull(byName.get(group));
    return declared.members().get(declared.partOf(rank).orElseThrow());
  }

  private void check(Collective collective, Graph graph, List<Graph> graphOfRank) {
    @Nullable ProcessGroup group = byName.get(collective.group());
    if (wrongGroups.contains(collective.group())) {
      return;
    }
    if (group == null) {
      wrongGroups.add(collective.group());
      report(
          collective,
          "'%s' uses group '%s', which is not declared"
              .formatted(collective.name(), collective.group()),
          "groups: " + byName.keySet());
      return;
    }
    for (int rank = 0; rank < graphOfRank.size(); rank++) {
      if (graphOfRank.get(rank) == graph && group.partOf(rank).isEmpty()) {
        wrongGroups.add(group.name());
        report(
            collective,
            "rank %s runs '%s' but is not in group '%s'"
                .formatted(rank, collective.name(), group.name()),
            hint(group, rank, graphOfRank.size()));
        return;
      }
    }
    checkSize(collective, group);
    if ((collective.kind() == Kind.BROADCAST && collective.root() < 0)
        || collective.root() >= group.size()) {
      report(
          collective,
          "the root of '%s' is group rank %s, but group '%s' has %s"
              .formatted(
                  collective.name(),
                  collective.root(),
                  group.name(),
                  Units.count(group.size(), "rank")),
          "");
    }
    int furthest = collective.op().collective().orElseThrow().permutation().maxRank();
    if (furthest >= group.size()) {
      report(
          collective,
          "'%s' has a pair with group rank %s, but group '%s' has %s"
              .formatted(
                  collective.name(), furthest, group.name(), Units.count(group.size(), "rank")),
          "ranks of pairs are positions in the group, from 0");
    }
  }

  /** How a rank that is in no part of a group comes into one. */
  private static String hint(ProcessGroup group, int rank, int worldSize) {
    int named = group.maxRank() + 1;
    if (rank < named) {
      return "give the group a part for rank " + rank;
    }
    if (worldSize % named != 0) {
      return "give --ranks " + named;
    }
    var parts = new ArrayList<ImmutableIntArray>();
    for (int first = 0; first < worldSize; first += named) {
      for (var part : group.members()) {
        int shift = first;
        parts.add(ImmutableIntArray.copyOf(part.stream().map(member -> member + shift)));
      }
    }
    return "give --ranks %s, or the group a part for every rank: group %s = %s"
        .formatted(
            named,
            group.name(),
            parts.stream().map(Object::toString).collect(Collectors.joining(", ")));
  }

  private void checkSize(Collective collective, ProcessGroup group) {
    var call = collective.op().collective().orElseThrow();
    long size = call.groupSize().orElse(group.size());
    if (size != group.size()) {
      report(
          collective,
          "'%s' is for a group of %s, but group '%s' has %s"
              .formatted(collective.name(), size, group.name(), Units.count(group.size(), "rank")),
          "");
    }
    int splits = call.outputSplits().length();
    if (collective.kind() == Kind.ALL_TO_ALL && splits != 0 && splits != group.size()) {
      report(
          collective,
          "'%s' splits into %s, but group '%s' has %s"
              .formatted(
                  collective.name(), splits, group.name(), Units.count(group.size(), "rank")),
          "");
    }
  }

  private void report(Collective collective, String message, String hint) {
    report(collective.op().span(), message, hint);
  }

  private void report(Span span, String message, String hint) {
    sink.report(Diagnostic.error(DiagnosticCode.BAD_GROUP, span, message, hint));
  }
}
