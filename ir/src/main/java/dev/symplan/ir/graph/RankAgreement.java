package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Maps;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Checks that the per-rank versions of a graph can run together: where their ranks meet, the same
 * collectives in the same order on tensors of the same types, in groups of the same size ({@link
 * Meetings}). Local code may differ, and so may the names of groups, inputs and outputs, and
 * collectives in which the ranks do not meet. If the versions are several graphs that are planned
 * together, inputs and outputs have the same kinds, too, and differ only in their sizes.
 *
 * <p>What ranks send each other in an {@code all_to_all} may differ from rank to rank, but what one
 * sends the other must take. That can be wrong even where all ranks run one graph.
 */
public final class RankAgreement {
  private final Map<String, ProcessGroup> groups = new HashMap<>();
  private final DiagnosticSink sink;

  private RankAgreement(List<ProcessGroup> known, DiagnosticSink sink) {
    known.forEach(group -> groups.put(group.name(), group));
    this.sink = sink;
  }

  /** Reports the first disagreement of each graph with the first one of its name. */
  public static void check(Program program, DiagnosticSink sink) {
    var families = new LinkedHashMap<String, List<Graph>>();
    for (var graph : program.graphs()) {
      families.computeIfAbsent(graph.name(), name -> new ArrayList<>()).add(graph);
    }
    var agreement = new RankAgreement(program.groups(), sink);
    families.values().forEach(agreement::check);
  }

  /**
   * Reports the first {@code all_to_all} in which a rank does not take what another one sends it.
   *
   * @param versions the graphs that the ranks run; where their ranks meet, these have the same
   *     kinds of collectives in the same order
   */
  public static void checkExchanges(
      List<ProcessGroup> groups, List<Graph> versions, DiagnosticSink sink) {
    var agreement = new RankAgreement(groups, sink);
    agreement.checkExchanges(
        versions,
        versions.stream().map(RankAgreement::collectives).toList(),
        Meetings.of(groups, versions));
  }

  private void check(List<Graph> versions) {
    var first = versions.getFirst();
    for (var other : severalGraphs(versions) ? versions : List.<Graph>of()) {
      if (!kinds(first.inputs()).equals(kinds(other.inputs()))) {
        report(other.span(), first.span(), "the ranks' inputs differ");
        return;
      }
      if (!outputKinds(first).equals(outputKinds(other))) {
        report(other.span(), first.span(), "the ranks' outputs differ");
        return;
      }
    }
    var collectives = versions.stream().map(RankAgreement::collectives).toList();
    var meetings = Meetings.of(ImmutableList.copyOf(groups.values()), versions);
    if (meetings.stream().allMatch(own -> agree(versions, collectives, own))
        && MeetingOrder.check(versions, meetings, sink)) {
      checkExchanges(versions, collectives, meetings);
    }
  }

  /** Whether the versions are several graphs that are planned together, whose borders are alike. */
  private static boolean severalGraphs(List<Graph> versions) {
    return versions.stream()
        .anyMatch(
            graph -> !Parallel.filter(graph.ops(), op -> op.def().has(OpTrait.BORDER)).isEmpty());
  }

  private void checkExchanges(
      List<Graph> versions, List<List<Op>> collectives, List<Meetings> meetings) {
    for (var own : meetings) {
      var graphs = own.positions().keySet().stream().map(versions::get).toList();
      int count = own.ofFirst().length();
      for (int i = 0; i < count; i++) {
        int at = i;
        var ops =
            own.positions().entrySet().stream()
                .map(entry -> collectives.get(entry.getKey()).get(entry.getValue().get(at)))
                .toList();
        if (!splitsAgree(graphs, ops)) {
          return;
        }
      }
    }
  }

  /** Compares the collectives in which ranks of several versions meet with those of the first. */
  private boolean agree(List<Graph> versions, List<List<Op>> collectives, Meetings meetings) {
    int first = meetings.positions().firstKey();
    var expected = meetings.ofFirst();
    for (var entry : meetings.positions().tailMap(first, false).entrySet()) {
      int other = entry.getKey();
      var found = entry.getValue();
      for (int i = 0; i < Math.min(expected.length(), found.length()); i++) {
        var a = collectives.get(first).get(expected.get(i));
        var b = collectives.get(other).get(found.get(i));
        if (!agree(found.get(i), a, b)) {
          return false;
        }
      }
      if (expected.length() != found.length()) {
        boolean more = found.length() > expected.length();
        var extra =
            more
                ? collectives.get(other).get(found.get(expected.length()))
                : collectives.get(first).get(expected.get(found.length()));
        return report(
            more ? extra.span() : versions.get(other).span(),
            more ? versions.get(first).span() : extra.span(),
            "ranks of group '%s' have %s in it here, but %s on other ranks"
                .formatted(
                    groupName(extra), Units.count(found.length(), "collective"), expected.length()),
            "give the graphs of all ranks of a group the same collectives in it");
      }
    }
    return true;
  }

  private boolean agree(int position, Op a, Op b) {
    if (!describe(a).equals(describe(b))) {
      return report(
          b.span(),
          a.span(),
          "collective %s is %s here, but %s on other ranks"
              .formatted(position, describe(b), describe(a)));
    }
    @Nullable ProcessGroup groupOfA = group(a);
    @Nullable ProcessGroup groupOfB = group(b);
    return groupOfA == null
        || groupOfB == null
        || groupOfA.size() == groupOfB.size()
        || report(
            b.span(),
            a.span(),
            "collective %s is among %s here (group '%s'), but among %s on other ranks ('%s')"
                .formatted(
                    position,
                    Units.count(groupOfB.size(), "rank"),
                    groupOfB.name(),
                    groupOfA.size(),
                    groupOfA.name()));
  }

  private boolean report(Span here, Span there, String message) {
    return report(here, there, message, "capture all ranks in one run of one program");
  }

  private boolean report(Span here, Span there, String message, String hint) {
    sink.report(
        new Diagnostic(
            Diagnostic.Severity.ERROR,
            DiagnosticCode.RANKS_DISAGREE,
            here,
            message,
            hint,
            ImmutableList.of("the other rank's is at " + there)));
    return false;
  }

  private @Nullable ProcessGroup group(Op op) {
    return groups.get(groupName(op));
  }

  static String groupName(Op op) {
    return op.collective().orElseThrow().group();
  }

  /** Takes the same collective as each version of a graph has it. */
  private boolean splitsAgree(List<Graph> versions, List<Op> ops) {
    var named = new LinkedHashMap<String, ProcessGroup>();
    for (var op : ops) {
      @Nullable ProcessGroup group = group(op);
      if (hasSplits(op) && group != null) {
        named.put(group.name(), group);
      }
    }
    var ranksOf = named.isEmpty() ? List.<BitSet>of() : ranksOf(versions, named.values());
    for (var group : named.values()) {
      // Parts that have the versions at the same positions agree alike.
      var checked = new HashSet<List<List<Integer>>>();
      for (var part : group.members()) {
        var positions = ranksOf.stream().map(own -> positions(part, own)).toList();
        if (checked.add(positions) && !splitsAgree(ops, positions, part)) {
          return false;
        }
      }
    }
    return true;
  }

  /** {@return for each version, the ranks of the groups that run it} */
  private static List<BitSet> ranksOf(List<Graph> versions, Collection<ProcessGroup> groups) {
    int ranks = groups.stream().mapToInt(ProcessGroup::maxRank).max().orElseThrow() + 1;
    return versions.stream()
        .map(
            version -> {
              var own = new BitSet();
              version.ranks().forEach(own::set);
              if (version.ranks().isEmpty()) {
                own.set(0, ranks);
              }
              return own;
            })
        .toList();
  }

  private static List<Integer> positions(ImmutableIntArray part, BitSet ranks) {
    return IntStream.range(0, part.length()).filter(i -> ranks.get(part.get(i))).boxed().toList();
  }

  private static boolean hasSplits(Op op) {
    var spec = op.def().collective().orElseThrow();
    return spec.kind() == Kind.ALL_TO_ALL
        && spec.has(Role.INPUT_SPLIT_SIZES)
        && spec.has(Role.OUTPUT_SPLIT_SIZES);
  }

  /**
   * @param positions by version, those of the part's ranks that run it
   */
  private boolean splitsAgree(
      List<Op> ops, List<List<Integer>> positions, ImmutableIntArray ranks) {
    for (int taker = 0; taker < ops.size(); taker++) {
      for (int sender = 0; sender < ops.size(); sender++) {
        var to = positions.get(taker);
        var from = positions.get(sender);
        if (!to.isEmpty()
            && !from.isEmpty()
            && !splitsAgree(ops.get(taker), to, ops.get(sender), from, ranks)) {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * Every rank of {@code to} must take what every rank of {@code from} sends it. The ones run the
   * same code, and so do the others, so that it is enough to compare with the first of each.
   */
  private boolean splitsAgree(
      Op taker, List<Integer> to, Op sender, List<Integer> from, ImmutableIntArray ranks) {
    return from.stream().allMatch(i -> rowsAgree(taker, to.getFirst(), sender, i, ranks))
        && to.stream().allMatch(i -> rowsAgree(taker, i, sender, from.getFirst(), ranks));
  }

  private boolean rowsAgree(Op taker, int to, Op sender, int from, ImmutableIntArray ranks) {
    if (!hasSplits(taker) || !hasSplits(sender)) {
      return true;
    }
    var takes = taker.collective().orElseThrow();
    var sends = sender.collective().orElseThrow();
    long taken = rows(takes.outputSplits(), taker.result(), from, ranks.length());
    long sent = rows(sends.inputSplits(), sends.operands().getFirst(), to, ranks.length());
    if (taken == sent || taken < 0 || sent < 0) {
      return true;
    }
    return report(
        taker.span(),
        sender.span(),
        "rank %s takes %s from rank %s, which sends it %s"
            .formatted(ranks.get(to), Units.count(taken, "row"), ranks.get(from), sent),
        "the split sizes of the ranks must fit each other, and so must bounds of them (--dim-max)");
  }

  /** {@return the rows for one peer; −1 where that cannot be said} */
  private static long rows(ImmutableLongArray splits, Value tensor, int peer, int size) {
    if (!splits.isEmpty()) {
      return peer < splits.length() ? splits.get(peer) : -1;
    }
    return tensor.type() instanceof TensorType type && type.rank() > 0 ? type.size(0) / size : -1;
  }

  private static List<String> kinds(List<Value> values) {
    return values.stream().map(value -> kind(value.type())).toList();
  }

  private static List<String> outputKinds(Graph graph) {
    return graph.outputs().stream()
        .map(
            output ->
                output instanceof Arg.Ref(Value value) ? kind(value.type()) : describe(output))
        .toList();
  }

  /** The part of a type that is left when each rank may have other sizes. */
  private static String kind(Type type) {
    return type instanceof TensorType tensor
        ? "%s of rank %s @%s".formatted(tensor.dtype(), tensor.rank(), tensor.space())
        : type.toString();
  }

  static List<Op> collectives(Graph graph) {
    return Parallel.filter(graph.ops(), op -> op.def().collective().isPresent());
  }

  /** {@return everything about a collective that ranks must agree on, but for the group's name} */
  static String describe(Op op) {
    var spec = op.def().collective().orElseThrow();
    var text = new StringBuilder(op.def().name().toString()).append('(');
    var ignored =
        Maps.filterKeys(
                spec.params(),
                Set.of(Role.GROUP, Role.INPUT_SPLIT_SIZES, Role.OUTPUT_SPLIT_SIZES)::contains)
            .values();
    var schema = op.def().schema();
    for (int i = 0; i < schema.params().size(); i++) {
      var name = schema.params().get(i).name();
      if (ignored.contains(name)) {
        continue;
      }
      text.append(i > 0 ? ", " : "");
      if (hasSplits(op) && op.args().get(i) instanceof Arg.Ref(Value value)) {
        text.append(anyRows(value.type()));
      } else {
        text.append(describe(op.args().get(i)));
      }
    }
    return text.append(')').toString();
  }

  /** Ranks may send different numbers of rows to each other. */
  private static String anyRows(Type type) {
    if (!(type instanceof TensorType tensor) || tensor.rank() == 0) {
      return type.toString();
    }
    var text = new StringBuilder(tensor.dtype().shortName()).append("[…");
    for (int i = 1; i < tensor.rank(); i++) {
      text.append(", ").append(tensor.size(i));
    }
    return text.append(']').toString();
  }

  private static String describe(List<Arg> args) {
    return args.stream().map(RankAgreement::describe).toList().toString();
  }

  private static String describe(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> value.type().toString();
      case Arg.Seq(ImmutableList<Arg> items) -> describe(items);
      case Arg.Int(long value) -> Long.toString(value);
      case Arg.Str(String value) -> value;
      case Arg.Float _, Arg.Bool _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.None _ ->
          arg.toString();
    };
  }
}
