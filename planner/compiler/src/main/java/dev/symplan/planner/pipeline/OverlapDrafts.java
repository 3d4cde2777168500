package dev.symplan.planner.pipeline;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.place.ScheduleSteps;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.Select.Selection;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.StreamKind;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Drafts of the same graph in the same order, with less of its communication beside compute. What a
 * draft has in common with the one that it is made from is not planned again.
 */
final class OverlapDrafts {
  /** How many collectives may be in flight ahead, in drafts where fewer start early. */
  private static final ImmutableList<Integer> DEPTHS = ImmutableList.of(0, 1);

  /** How often collectives are kept apart: each time, others may be in flight at the peak. */
  private static final int MAX_APART = 3;

  private final ImmutableList<GraphPass> draft;
  private final SelectVariants select = new SelectVariants();
  private final PassContext context;

  /** The sources of drafts without overlap; analyses are equal only to themselves. */
  private record Made(ImmutableList<Analyses> graphs, boolean workspaces) {}

  private final Map<Made, GraphState> alone = new HashMap<>();

  OverlapDrafts(ImmutableList<GraphPass> draft, PassContext context) {
    this.draft = draft;
    this.context = context;
  }

  /** {@return a draft without overlap: the given one if it has none} */
  GraphState alone(GraphState made) {
    boolean workspaces = made.facts().find(SelectVariants.NO_WORKSPACES).isEmpty();
    var key = new Made(made.analyses(), workspaces);
    @Nullable GraphState known = alone.get(key);
    var found = known == null ? withoutOverlap(made) : known;
    alone.put(key, found);
    return found;
  }

  private GraphState withoutOverlap(GraphState made) {
    if (!context.options().overlap() || !isAsync(made) && !isAnyHideable(made)) {
      return made;
    }
    var apart = context.with(context.options().withOverlap(false));
    var selected = Pipeline.run(select, made.withGraphs(made.graphs()), apart);
    if (!variants(selected).equals(variants(made))) {
      return Pipeline.runAll(draft, selected, apart);
    }
    return isAsync(made) ? Pipeline.runAll(draft, realized(selected, made), apart) : made;
  }

  /**
   * {@return drafts that have less in flight where more is live than without overlap} None if all
   * that overlaps takes no memory.
   *
   * @param alone the draft without overlap
   */
  ImmutableList<GraphState> between(GraphState made, GraphState alone) {
    long bytes = Candidates.figures(alone).peakBytes();
    if (Candidates.figures(made).peakBytes() <= bytes) {
      return ImmutableList.of();
    }
    var drafts = ImmutableList.<GraphState>builder();
    if (context.options().prefetch().isEmpty()) {
      DEPTHS.stream()
          .map(depth -> context.options().withPrefetch(OptionalInt.of(depth)))
          .map(options -> Pipeline.runAll(draft, realized(made), context.with(options)))
          .forEach(drafts::add);
    }
    var last = made;
    var apart = ImmutableSet.<Integer>of();
    for (int i = 0; i < MAX_APART; i++) {
      var found = ScheduleSteps.inFlightAbove(bytes, last);
      if (found.isEmpty()) {
        break;
      }
      apart = ImmutableSet.<Integer>builder().addAll(apart).addAll(found).build();
      last = Pipeline.runAll(draft, realized(made).with(ScheduleSteps.APART, apart), context);
      drafts.add(last);
    }
    return drafts.build();
  }

  private static GraphState realized(GraphState made) {
    var selections = made.get(SelectVariants.SELECTIONS);
    return realized(
        made.withGraphs(made.graphs()).with(SelectVariants.SELECTIONS, selections), made);
  }

  /** The same variants need the same copies. */
  private static GraphState realized(GraphState selected, GraphState made) {
    return selected.with(RealizeOperands.REALIZED, made.get(RealizeOperands.REALIZED));
  }

  private static ImmutableList<Variant> variants(GraphState state) {
    return state.get(SelectVariants.SELECTIONS).stream()
        .map(Selection::variant)
        .collect(toImmutableList());
  }

  /** Whether compute could hide any collective; if not, all variants are those without overlap. */
  private static boolean isAnyHideable(GraphState made) {
    return made.analyses().stream()
        .anyMatch(
            own ->
                IntStream.range(0, own.collectives().size())
                    .anyMatch(k -> own.overlap().hideableMicros(k) > 0));
  }

  private static boolean isAsync(GraphState made) {
    return made.get(ScheduleSteps.SCHEDULES).stream()
        .flatMap(schedule -> schedule.streams().stream())
        .anyMatch(stream -> stream != StreamKind.COMPUTE);
  }
}
