package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;
import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Iterables;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.DomainGroups;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.rewrite.DomainPhases.Made;
import dev.symplan.planner.pass.select.CollectiveCost;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Makes collectives between NVLink domains hierarchical: phases within domains, which have all
 * variants, and phases across them, in which every rank uses its own rail ({@link DomainPhases}).
 */
public final class Hierarchy implements Rewriter {

  /** In auto, what phases must gain at least: their times are estimates. */
  private static final double MIN_GAIN = 0.03;

  @Override
  public Mode mode(RewriteOptions options) {
    return options.hierarchical();
  }

  @Override
  public Proposal propose(GraphState state, PassContext context) {
    return new Search(state, context).propose();
  }

  /**
   * The graphs with phases, and what was selected for them.
   *
   * @param copyMicros by collective of the source, the time of those copies that no collective took
   *     over, on the rank that copies longest
   */
  private record Draft(GraphState state, ImmutableMap<Integer, Double> copyMicros) {}

  private static final class Search {
    private final GraphState state;
    private final PassContext context;
    private final ImmutableList<Analyses> graphs;
    private final Mode mode;
    private final List<Rewrite> rewrites = new ArrayList<>();

    Search(GraphState state, PassContext context) {
      this.state = state;
      this.context = context;
      this.graphs = state.analyses();
      this.mode = context.options().rewrites().hierarchical();
    }

    Proposal propose() {
      var candidates =
          IntStream.range(0, graphs.getFirst().collectives().size())
              .filter(this::isCandidate)
              .boxed()
              .collect(toImmutableSet());
      if (candidates.isEmpty()) {
        return new Proposal(state.graphs(), ImmutableList.copyOf(rewrites));
      }
      var draft = draft(candidates);
      var chosen = new LinkedHashSet<Integer>();
      int position = 0;
      for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
        int phases = candidates.contains(k) ? DomainPhases.phases(kind(k)) : 1;
        if (candidates.contains(k) && isTaken(k, phases, position, draft)) {
          chosen.add(k);
        }
        position += phases;
      }
      var taken = chosen.size() == candidates.size() ? draft : draft(chosen);
      return new Proposal(taken.state().graphs(), ImmutableList.copyOf(rewrites));
    }

    private Kind kind(int k) {
      return graphs.getFirst().collectives().get(k).kind();
    }

    /** Whether a collective can have phases, on all ranks. Where it cannot, the reason is noted. */
    private boolean isCandidate(int k) {
      boolean spans =
          graphs.stream()
              .map(graph -> context.reach(graph.collectives().get(k).group()))
              // One rank in each domain has nothing to do within it.
              .anyMatch(reach -> !reach.isWithinDomain() && reach.domains() < reach.ranks());
      if (!spans || !graphs.stream().allMatch(graph -> isPlain(graph.collectives().get(k)))) {
        return false;
      }
      if (graphs.stream()
          .anyMatch(graph -> context.isBetweenStages(graph.collectives().get(k).group()))) {
        return flat(k, Reason.OTHER_STAGE, Rewriter.detail(Reason.OTHER_STAGE));
      }
      var groups =
          graphs.stream()
              .flatMap(
                  graph -> context.groups().domains(graph.collectives().get(k).group()).stream())
              .toList();
      if (groups.size() < graphs.size()
          || groups.stream().map(own -> own.within().size()).distinct().count() > 1) {
        return flat(k, Reason.UNEQUAL_DOMAINS, "its ranks are not as many in each NVLink domain");
      }
      if (kind(k) != Kind.ALL_REDUCE && !groups.stream().allMatch(DomainGroups::inOrder)) {
        return flat(
            k, Reason.RANK_ORDER, "the ranks of a domain do not follow each other in its group");
      }
      if (graphs.stream().anyMatch(graph -> isForced(graph.collectives().get(k)))) {
        return flat(k, Reason.FORCED_VARIANT, "its variant is forced");
      }
      int within = groups.getFirst().within().size();
      return graphs.stream()
          .flatMap(graph -> uneven(graph.collectives().get(k), within).stream())
          .findFirst()
          .map(detail -> flat(k, Reason.UNEVEN, detail))
          .orElse(true);
    }

    /** Whether it is a functional collective that has phases. */
    private static boolean isPlain(Collective collective) {
      return switch (collective.kind()) {
        case ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST ->
            collective.op().def().name().namespace().startsWith("_c10d_functional")
                && !collective.op().def().schema().mutates();
        case COLLECTIVE_PERMUTE, CUSTOM -> false;
      };
    }

    /** Phases across domains run on NCCL, whatever the caller wants of their kind. */
    private boolean isForced(Collective collective) {
      return context.forcesVariant(collective)
          || phaseKinds(collective.kind())
              .anyMatch(
                  kind -> {
                    @Nullable Variant wanted = context.options().variants().get(kind.text());
                    return wanted != null && wanted != Variant.NCCL;
                  });
    }

    private static Stream<Kind> phaseKinds(Kind kind) {
      return kind == Kind.ALL_REDUCE
          ? Stream.of(Kind.REDUCE_SCATTER, Kind.ALL_REDUCE, Kind.ALL_GATHER)
          : Stream.of(kind);
    }

    private static Optional<String> uneven(Collective collective, int within) {
      for (var value : Iterables.concat(collective.operands(), collective.results())) {
        if (!value.tensor().isContiguous()) {
          return Optional.of("%s is not contiguous".formatted(value.name()));
        }
      }
      for (var operand : collective.operands()) {
        var type = operand.tensor();
        if (type.numel() == 0
            || (collective.kind() == Kind.ALL_REDUCE && type.numel() % within != 0)) {
          return Optional.of(
              "the %s elements of %s do not divide into slices for %s ranks"
                  .formatted(type.numel(), operand.name(), within));
        }
      }
      return collective.request().hasEqualRows()
          ? Optional.empty()
          : Optional.of("its ranks send unequal parts");
    }

    private boolean flat(int k, Reason reason, String detail) {
      note(k, Action.FLAT, 1, reason, detail, 0, 0);
      return false;
    }

    /** The copies that put slices in order are folded where that is predicted to be faster. */
    private Draft draft(Set<Integer> split) {
      var made = ImmutableList.<Made>builder();
      for (var graph : graphs) {
        var groups = ImmutableMap.<Integer, DomainGroups>builder();
        for (int k : split) {
          context
              .groups()
              .domains(graph.collectives().get(k).group())
              .ifPresent(own -> groups.put(k, own));
        }
        made.add(DomainPhases.run(graph, groups.buildOrThrow()));
      }
      var all = made.build();
      var copied = select(all.stream().map(Made::graph).collect(toImmutableList()));
      if (context.options().rewrites().layouts() == Mode.OFF) {
        return new Draft(copied, copyMicros(copied, all));
      }
      var folded = new FoldLayouts(phases(split)::contains).propose(copied, context).graphs();
      var selected = folded.equals(copied.graphs()) ? copied : select(folded);
      return new Draft(selected, copyMicros(selected, all));
    }

    private GraphState select(ImmutableList<Graph> candidates) {
      return new SelectVariants().run(state.withGraphs(candidates), context);
    }

    /** The positions of all phases among the collectives. */
    private Set<Integer> phases(Set<Integer> split) {
      var positions = new HashSet<Integer>();
      int position = 0;
      for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
        int phases = split.contains(k) ? DomainPhases.phases(kind(k)) : 1;
        for (int i = 0; i < phases && split.contains(k); i++) {
          positions.add(position + i);
        }
        position += phases;
      }
      return positions;
    }

    private boolean isTaken(int k, int phases, int position, Draft draft) {
      double before = CollectiveCost.chosenMicros(state, k);
      double after = draft.copyMicros().getOrDefault(k, 0.0);
      boolean named = false;
      for (int i = position; i < position + phases; i++) {
        after += CollectiveCost.chosenMicros(draft.state(), i);
        named |= isNamed(draft.state(), i);
      }
      boolean pays = after < before * (1 - MIN_GAIN);
      if (!pays && !named && mode != Mode.ON) {
        var detail =
            String.format(Locale.ROOT, "%.1f µs in %s phases, %.1f flat", after, phases, before);
        note(k, Action.FLAT, 1, Reason.NO_GAIN, detail, before, after);
        return false;
      }
      var own = context.groups().domains(graphs.getFirst().collectives().get(k).group());
      var detail =
          own.map(
                  groups ->
                      "%s domains of %s ranks"
                          .formatted(groups.across().size(), groups.within().size()))
              .orElseThrow();
      var reason = after < before ? Reason.FASTER : Reason.WANTED;
      note(k, Action.HIERARCHICAL, phases, reason, detail, before, after);
      return true;
    }

    /** The caller may name what only the draft has. */
    private boolean isNamed(GraphState draft, int phase) {
      return draft.analyses().stream()
          .anyMatch(
              graph ->
                  context.options().variants().containsKey(graph.collectives().get(phase).name()));
    }

    private ImmutableMap<Integer, Double> copyMicros(GraphState drafted, ImmutableList<Made> made) {
      var most = new HashMap<Integer, Double>();
      for (int g = 0; g < made.size(); g++) {
        var collectiveOf = made.get(g).copies().inverse();
        var own = new HashMap<Integer, Double>();
        for (var op : drafted.graphs().get(g).ops()) {
          if (op.def().name().toString().equals("aten::clone")) {
            double micros = context.costs().computeMicros(op);
            collectiveOf.get(op.result().id()).forEach(k -> own.merge(k, micros, Double::sum));
          }
        }
        own.forEach((k, micros) -> most.merge(k, micros, Math::max));
      }
      return ImmutableMap.copyOf(most);
    }

    private void note(
        int k,
        Action action,
        int pieces,
        Reason reason,
        String detail,
        double before,
        double after) {
      var members = ImmutableList.of(Rewriter.member(graphs, k));
      rewrites.add(new Rewrite(action, members, pieces, reason, detail, before, after));
    }
  }
}
