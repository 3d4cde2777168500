package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Lists;
import com.google.common.collect.Streams;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Requirement;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.CollectiveCost;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Lets collectives move slices that lie side by side ({@link FoldableLayouts}), or several tensors
 * ({@link FoldablePacks}), in place of the copies around them ({@link LayoutFolding}).
 */
public final class FoldLayouts implements Rewriter {
  /** In auto, no row has fewer bytes: a line of the GPU's cache. */
  private static final long LINE = 128;

  private final IntPredicate considered;

  /** For all collectives. */
  public FoldLayouts() {
    this(_ -> true);
  }

  /** For those collectives that the predicate accepts. */
  FoldLayouts(IntPredicate considered) {
    this.considered = considered;
  }

  @Override
  public Mode mode(RewriteOptions options) {
    return options.layouts();
  }

  @Override
  public Proposal propose(GraphState state, PassContext context) {
    return new Search(state, context, considered).propose();
  }

  /** By graph, the fold of one collective. */
  private record Candidate(ImmutableList<Fold> folds) {
    int collective() {
      return folds.getFirst().collective();
    }

    /** {@return the positions of the copies in any graph} */
    Stream<Integer> copies() {
      return folds.stream().flatMap(fold -> fold.copies().asList().stream());
    }
  }

  private static final class Search {
    private final GraphState state;
    private final PassContext context;
    private final ImmutableList<Analyses> graphs;
    private final ImmutableList<FoldableLayouts> rows;
    private final ImmutableList<FoldablePacks> packs;
    private final IntPredicate considered;
    private final List<Rewrite> rewrites = new ArrayList<>();

    Search(GraphState state, PassContext context, IntPredicate considered) {
      this.considered = considered;
      this.state = state;
      this.context = context;
      this.graphs = state.analyses();
      var flows = graphs.stream().map(DataFlow::new).toList();
      this.rows =
          Streams.zip(graphs.stream(), flows.stream(), FoldableLayouts::new)
              .collect(toImmutableList());
      this.packs =
          Streams.zip(graphs.stream(), flows.stream(), FoldablePacks::new)
              .collect(toImmutableList());
    }

    Proposal propose() {
      var candidates = candidates();
      if (candidates.isEmpty()) {
        return new Proposal(state.graphs(), ImmutableList.copyOf(rewrites));
      }
      var chosen = new ArrayList<Candidate>();
      var folded = graphs(candidates);
      var after = new SelectVariants().run(state.withGraphs(folded), context);
      for (var candidate : candidates) {
        int k = candidate.collective();
        double before = CollectiveCost.chosenMicros(state, k) + copyMicros(candidate);
        double without = CollectiveCost.chosenMicros(after, k);
        boolean faster = without < before;
        // The caller may name what only the folded graph has.
        boolean named = after.analyses().stream().anyMatch(g -> isNamed(g.collectives().get(k)));
        boolean made = faster || named || mode() == Mode.ON;
        if (made) {
          chosen.add(candidate);
        }
        var reason = faster ? Reason.FASTER : made ? Reason.WANTED : Reason.NO_GAIN;
        var detail =
            made
                ? copied(candidate)
                : String.format(
                    Locale.ROOT, "%.1f µs without copies, %.1f with them", without, before);
        note(k, made ? Action.FOLDED : Action.UNFOLDED, reason, detail, before, without);
      }
      return new Proposal(
          chosen.size() == candidates.size() ? folded : graphs(chosen),
          ImmutableList.copyOf(rewrites));
    }

    private boolean isNamed(Collective collective) {
      return context.options().variants().containsKey(collective.name());
    }

    private Mode mode() {
      return context.options().rewrites().layouts();
    }

    private ImmutableList<Candidate> candidates() {
      var candidates = ImmutableList.<Candidate>builder();
      // A copy between two collectives can be folded into one of them only.
      var taken = new HashSet<Integer>();
      for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
        candidate(k)
            .filter(candidate -> candidate.copies().noneMatch(taken::contains))
            .ifPresent(
                candidate -> {
                  candidates.add(candidate);
                  candidate.copies().forEach(taken::add);
                });
      }
      return candidates.build();
    }

    private Optional<Candidate> candidate(int k) {
      return considered.test(k) ? ofRows(k).or(() -> ofPack(k)) : Optional.empty();
    }

    /** {@return the folds of one collective, if all ranks have one, and all alike} */
    private <F extends Fold> Optional<ImmutableList<F>> alike(
        int k, List<BiFunction<Integer, Integer, Optional<F>>> found) {
      var folds = ImmutableList.<F>builder();
      for (int g = 0; g < graphs.size(); g++) {
        var collective = graphs.get(g).collectives().get(k);
        var fold = found.get(g).apply(k, context.groupSize(collective.group()));
        if (fold.isEmpty()) {
          return Optional.empty();
        }
        folds.add(fold.get());
      }
      var all = folds.build();
      // Each rank writes into the others' tensors.
      return Optional.of(all).filter(_ -> all.stream().allMatch(all.getFirst()::isLike));
    }

    private Optional<Candidate> ofRows(int k) {
      boolean widens = canWiden(k);
      var all =
          this.<LayoutFold>alike(
              k, Lists.transform(rows, own -> (c, ranks) -> own.of(c, ranks, widens)));
      if (all.isEmpty()) {
        return Optional.empty();
      }
      if (isForced(k, Search::movesRows)) {
        note(k, Action.UNFOLDED, Reason.FORCED_VARIANT, "its variant is forced", 0, 0);
        return Optional.empty();
      }
      long row = all.get().getFirst().rowBytes();
      if (mode() == Mode.AUTO && (row < LINE || row % Alignment.VECTOR != 0)) {
        var detail =
            "its rows of %s are too short, or not a multiple of 16 bytes"
                .formatted(Units.count(row, "byte"));
        note(k, Action.UNFOLDED, Reason.NO_GAIN, detail, 0, 0);
        return Optional.empty();
      }
      if (!canMoveRows(k)) {
        note(k, Action.UNFOLDED, Reason.LAYOUT, "no variant that can run moves rows", 0, 0);
        return Optional.empty();
      }
      return all.map(folds -> new Candidate(ImmutableList.copyOf(folds)));
    }

    private Optional<Candidate> ofPack(int k) {
      boolean widens = canWiden(k);
      var all =
          this.<PackedFold>alike(
              k, Lists.transform(packs, own -> (c, ranks) -> own.of(c, ranks, widens)));
      if (all.isEmpty()) {
        return Optional.empty();
      }
      if (graphs.stream().anyMatch(g -> context.isBetweenStages(g.collectives().get(k).group()))) {
        note(k, Action.UNFOLDED, Reason.OTHER_STAGE, Rewriter.detail(Reason.OTHER_STAGE), 0, 0);
        return Optional.empty();
      }
      if (isForced(k, Search::takesAny)) {
        note(k, Action.UNFOLDED, Reason.FORCED_VARIANT, "its variant is forced", 0, 0);
        return Optional.empty();
      }
      int tensors = all.get().getFirst().parts().size();
      if (tensors > Bucketing.MAX_TENSORS) {
        var detail =
            "%s tensors; one collective takes at most %s".formatted(tensors, Bucketing.MAX_TENSORS);
        note(k, Action.UNFOLDED, Reason.SIZE, detail, 0, 0);
        return Optional.empty();
      }
      return all.map(folds -> new Candidate(ImmutableList.copyOf(folds)));
    }

    /** A variant that is named for one collective is that of the collective as it is. */
    private boolean isForced(int k, Predicate<VariantSpec> folds) {
      return graphs.stream().anyMatch(g -> isForced(g.collectives().get(k), folds));
    }

    private boolean isForced(Collective collective, Predicate<VariantSpec> folds) {
      @Nullable Variant wanted = context.options().variants().get(collective.kind().text());
      return context.forcesVariant(collective)
          || (wanted != null
              && VariantSpec.find(collective.kind(), wanted).filter(folds).isEmpty());
    }

    private boolean canMoveRows(int k) {
      return canRun(k, Search::movesRows);
    }

    private boolean canWiden(int k) {
      return canRun(k, Search::widens) && !isForced(k, Search::widens);
    }

    private boolean canRun(int k, Predicate<VariantSpec> folds) {
      return state.get(SelectVariants.SELECTIONS).get(k).verdicts().stream()
          .filter(verdict -> verdict.reason().eligible())
          .filter(verdict -> verdict.reason() != Verdict.Reason.NOT_NAMED)
          .map(
              verdict ->
                  VariantSpec.of(graphs.getFirst().collectives().get(k).kind(), verdict.variant()))
          .anyMatch(folds);
    }

    private static boolean widens(VariantSpec spec) {
      return !spec.requirements().contains(new Requirement.OneType());
    }

    private static boolean movesRows(VariantSpec spec) {
      return !spec.requirements().contains(new Requirement.Runs());
    }

    /** Whether a variant takes several tensors of any size, whatever the target. */
    private static boolean takesAny(VariantSpec spec) {
      return spec.requirements().stream()
          .noneMatch(
              requirement ->
                  requirement instanceof Requirement.OneTensor
                      || requirement instanceof Requirement.SeveralTensors
                      || requirement instanceof Requirement.AlignedSlices);
    }

    private ImmutableList<Graph> graphs(List<Candidate> candidates) {
      var all = ImmutableList.<Graph>builder();
      for (int g = 0; g < graphs.size(); g++) {
        int index = g;
        all.add(
            LayoutFolding.run(
                graphs.get(g), candidates.stream().map(c -> c.folds().get(index)).toList()));
      }
      return all.build();
    }

    /** On the rank that copies longest. */
    private double copyMicros(Candidate candidate) {
      double most = 0;
      for (int g = 0; g < graphs.size(); g++) {
        var ops = graphs.get(g).graph().ops();
        double own =
            candidate.folds().get(g).copies().stream()
                .mapToObj(ops::get)
                .mapToDouble(context.costs()::computeMicros)
                .sum();
        most = Math.max(most, own);
      }
      return most;
    }

    private String copied(Candidate candidate) {
      var ops = graphs.getFirst().graph().ops();
      var copies = candidate.folds().getFirst().copies();
      long bytes = copies.stream().mapToLong(op -> ops.get(op).result().tensor().bytes()).sum();
      return "%s of %s".formatted(Units.count(copies.length(), "copy"), Units.bytes(bytes));
    }

    private void note(
        int k, Action action, Reason reason, String detail, double before, double after) {
      var members = ImmutableList.of(Rewriter.member(graphs, k));
      rewrites.add(new Rewrite(action, members, 1, reason, detail, before, after));
    }
  }
}
