package dev.symplan.planner.report;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.Collection;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * The report of a plan, the same for all renderers.
 *
 * @param target the name of the target
 * @param ranks the world size
 * @param planOfRank for each rank, the number of its graph among the different ones
 */
public record PlanReport(
    String name,
    String target,
    String digest,
    int ranks,
    ImmutableList<Integer> planOfRank,
    ImmutableList<Section> sections) {

  /** {@return the usual views of a plan} */
  public static PlanReport of(Plan plan) {
    return of(plan, View.USUAL);
  }

  /**
   * {@return the views of a plan, in this order}
   *
   * <p>{@link View#CODE} is not among them: sections of other modules are added by {@link #with}.
   */
  public static PlanReport of(Plan plan, Collection<View> views) {
    var sections = new ArrayList<Section>();
    Supplier<ImmutableList<RankIndex>> indices = Suppliers.memoize(() -> indices(plan));
    for (var view : views) {
      switch (view) {
        case SUMMARY -> sections.add(SummarySection.of(plan, indices.get()));
        case COLLECTIVES ->
            sections.addAll(perGraph(indices.get(), index -> CollectivesSection.of(plan, index)));
        case VALUES -> sections.addAll(perGraph(indices.get(), ValuesSection::of));
        case MEMORY ->
            sections.addAll(perGraph(indices.get(), index -> MemorySection.of(plan, index)));
        case SCHEDULE ->
            sections.addAll(perGraph(indices.get(), index -> ScheduleSection.of(plan, index)));
        case GRAPH -> sections.addAll(GraphSection.of(plan, indices.get()));
        case PEAK -> sections.add(PeakReport.of(plan, indices.get()));
        case CODE -> {}
      }
    }
    return new PlanReport(
        plan.name(),
        plan.target().name(),
        plan.digest(),
        plan.worldSize(),
        plan.planOfRank().asList().stream().collect(ImmutableList.toImmutableList()),
        ImmutableList.copyOf(sections));
  }

  private static ImmutableList<RankIndex> indices(Plan plan) {
    var indices = ImmutableList.<RankIndex>builder();
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      indices.add(new RankIndex(plan.rankPlans().get(i), ranksOf(plan, i)));
    }
    return indices.build();
  }

  private static ImmutableList<Section> perGraph(
      ImmutableList<RankIndex> indices, Function<RankIndex, Section> section) {
    return indices.stream().map(section).collect(ImmutableList.toImmutableList());
  }

  /** {@return the ranks that run one of the graphs} */
  public static ImmutableList<Integer> ranksOf(Plan plan, int graph) {
    var ranks = ImmutableList.<Integer>builder();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      if (plan.planOfRank().get(rank) == graph) {
        ranks.add(rank);
      }
    }
    return ranks.build();
  }

  /** {@return all ranks of a plan} */
  static ImmutableList<Integer> ranksOf(Plan plan) {
    return IntStream.range(0, plan.worldSize()).boxed().collect(ImmutableList.toImmutableList());
  }

  /** {@return the report with one more section after the others} */
  public PlanReport with(Section section) {
    return withSections(ImmutableList.<Section>builder().addAll(sections).add(section).build());
  }

  /** {@return the report with advice on what would need less memory in {@link View#PEAK}} */
  public PlanReport withAdvice(Collection<Row> advice) {
    return withSections(
        sections.stream()
            .map(section -> section.view() == View.PEAK ? section.with(advice) : section)
            .collect(ImmutableList.toImmutableList()));
  }

  private PlanReport withSections(ImmutableList<Section> changed) {
    return new PlanReport(name, target, digest, ranks, planOfRank, changed);
  }

  /** {@return the sections of one view: one for each different graph} */
  public ImmutableList<Section> sections(View view) {
    return sections.stream()
        .filter(section -> section.view() == view)
        .collect(ImmutableList.toImmutableList());
  }
}
