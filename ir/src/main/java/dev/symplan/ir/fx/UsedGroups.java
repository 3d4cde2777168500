package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The process groups of imported graphs. The text has only their names.
 *
 * <p>A group that the options leave out consists of the ranks whose graph uses it: of all ranks,
 * where they share one graph. That is how PyTorch names groups: each name is one group, and every
 * member calls every collective of it.
 */
final class UsedGroups {
  /** The number of GPUs of the default target. */
  private static final int DEFAULT_RANKS = 4;

  /** A group that is not given. */
  private static final class Use {
    private final Op first;
    private final TreeSet<Integer> ranks = new TreeSet<>();
    private boolean allRanks;
    private long size;
    private @Nullable Op sized;

    Use(Op first) {
      this.first = first;
    }
  }

  private final ImportOptions options;
  private final DiagnosticSink sink;
  private final Map<String, Use> uses = new LinkedHashMap<>();
  private final Map<String, ProcessGroup> groups = new LinkedHashMap<>();

  private UsedGroups(ImportOptions options, DiagnosticSink sink) {
    this.options = options;
    this.sink = sink;
  }

  /** {@return the groups given, and those that the graphs use besides} */
  static ImmutableList<ProcessGroup> of(
      List<Graph> graphs, ImportOptions options, DiagnosticSink sink) {
    var used = new UsedGroups(options, sink);
    options.groups().forEach(group -> used.groups.put(group.name(), group));
    graphs.forEach(used::collect);
    int world = used.worldSize(graphs);
    used.uses.forEach((name, use) -> used.add(name, use, world));
    used.coverRanks();
    return ImmutableList.copyOf(used.groups.values());
  }

  private void collect(Graph graph) {
    for (var op : graph.ops()) {
      var name = op.collective().flatMap(CollectiveCall::groupName);
      if (name.filter(String::isEmpty).isPresent()) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.BAD_GROUP,
                op.span(),
                "the name of the group is empty",
                "write another name in the text"));
      } else if (name.isPresent() && !groups.containsKey(name.get())) {
        var use = uses.computeIfAbsent(name.get(), n -> new Use(op));
        graph.ranks().forEach(use.ranks::add);
        use.allRanks |= graph.ranks().isEmpty();
        var size = sizeIn(op.collective().get());
        if (size.isPresent() && use.sized == null) {
          use.size = size.getAsLong();
          use.sized = op;
        }
      }
    }
  }

  private static OptionalLong sizeIn(CollectiveCall call) {
    return call.groupSize().isPresent() || call.inputSplits().isEmpty()
        ? call.groupSize()
        : OptionalLong.of(call.inputSplits().length());
  }

  /** {@return the number of ranks, or 0 if nothing says} */
  private int worldSize(List<Graph> graphs) {
    if (options.ranks() > 0) {
      return options.ranks();
    }
    long size = 0;
    for (var graph : graphs) {
      size = Math.max(size, graph.ranks().stream().max().orElse(-1) + 1);
    }
    for (var group : options.groups()) {
      size = Math.max(size, group.maxRank() + 1);
    }
    for (var use : uses.values()) {
      size = Math.max(size, use.size);
    }
    return (int) Math.min(size, ProcessGroup.MAX_RANKS);
  }

  /** A program whose collectives leave ranks out, or that has none, still runs on all of them. */
  private void coverRanks() {
    int covered = groups.values().stream().mapToInt(ProcessGroup::maxRank).max().orElse(0);
    if (options.ranks() > covered + 1) {
      var name = "world";
      while (groups.containsKey(name)) {
        name += "_";
      }
      groups.put(name, ProcessGroup.world(name, options.ranks()));
    }
  }

  private void add(String name, Use use, int world) {
    if (use.allRanks && world == 0) {
      sink.report(
          Diagnostic.warning(
              DiagnosticCode.BAD_GROUP,
              use.first.span(),
              "the number of ranks in group '%s' is unknown; assuming %s"
                  .formatted(name, DEFAULT_RANKS),
              "give --ranks"));
      groups.put(name, ProcessGroup.world(name, DEFAULT_RANKS));
      return;
    }
    var group =
        use.allRanks
            ? ProcessGroup.world(name, world)
            : new ProcessGroup(name, ImmutableList.of(ImmutableIntArray.copyOf(use.ranks)));
    @Nullable Op sized = use.sized;
    if (sized != null && use.size != group.size()) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_GROUP,
              sized.span(),
              "group '%s' has %s here, but %s use it"
                  .formatted(
                      name, Units.count(use.size, "rank"), Units.count(group.size(), "rank")),
              use.size > group.size() && use.allRanks
                  ? "give --ranks %s".formatted(use.size)
                  : "list its ranks in groups.json: {\"%s\": [0, 1]}".formatted(name)));
    }
    groups.put(name, group);
  }
}
