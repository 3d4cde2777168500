package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.PassObserver.Pass;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.RankGraph;
import dev.symplan.planner.pass.analysis.SpaceChoice;
import dev.symplan.planner.pass.place.Allocate;
import dev.symplan.planner.pass.place.Liveness;
import dev.symplan.planner.pass.place.Schedule;
import dev.symplan.planner.pass.place.Workspaces;
import dev.symplan.planner.pass.select.Realize;
import dev.symplan.planner.pass.select.Realize.Realized;
import dev.symplan.planner.pass.select.Select;
import dev.symplan.planner.pass.select.Select.Selection;
import dev.symplan.planner.plan.OrderDecision.Figures;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;

/**
 * All of a plan but the places in the arenas: what some order of the ops comes to.
 *
 * @param graphs the normalized graphs that it is made of
 * @param workspaces what collectives push through
 * @param inPlace for each collective, whether its results take the places of its operands
 */
record PlanDraft(
    ImmutableList<RankGraph> graphs,
    ImmutableList<Selection> selections,
    ImmutableList<Realized> realized,
    ImmutableList<Schedule> schedules,
    ImmutableList<Liveness> lives,
    Workspaces workspaces,
    boolean[] inPlace) {

  static PlanDraft of(
      List<Graph> normalized,
      List<SpaceChoice> spaces,
      Target target,
      CompileOptions options,
      CostModel costs,
      Function<String, ProcessGroup> groups,
      PassObserver observer) {
    ToIntFunction<String> groupSize = name -> groups.apply(name).size();
    var graphs =
        IntStream.range(0, normalized.size())
            .mapToObj(
                g -> RankGraph.analyze(normalized.get(g), spaces.get(g), costs, options.fusion()))
            .collect(ImmutableList.toImmutableList());
    var selections =
        observer.time(Pass.SELECT, () -> Select.run(graphs, target, options, costs, groups));
    var realized =
        observer.time(
            Pass.REALIZE,
            () ->
                IntStream.range(0, graphs.size())
                    .mapToObj(g -> Realize.run(graphs.get(g), selections, spaces.get(g)))
                    .collect(ImmutableList.toImmutableList()));
    var variants =
        selections.stream().map(Selection::variant).collect(ImmutableList.toImmutableList());
    var schedules = ImmutableList.<Schedule>builder();
    var lives = ImmutableList.<Liveness>builder();
    for (var graph : realized) {
      var fusion = Fusion.of(graph.graph(), graph.aliases(), options.fusion());
      var schedule =
          observer.time(
              Pass.SCHEDULE,
              () -> Schedule.of(graph, fusion, variants, costs, options.overlap(), groupSize));
      schedules.add(schedule);
      lives.add(Liveness.of(graph, fusion, schedule));
    }
    var allLives = lives.build();
    var allSchedules = schedules.build();
    return new PlanDraft(
        graphs,
        selections,
        realized,
        allSchedules,
        allLives,
        Workspaces.of(realized, allSchedules, variants, groupSize),
        mergeInPlace(allLives, variants, groupSize));
  }

  /** All ranks do in place what all ranks can. */
  private static boolean[] mergeInPlace(
      List<Liveness> lives, ImmutableList<Variant> variants, ToIntFunction<String> groupSize) {
    lives.forEach(life -> life.mergeConcatenations(lives.size() == 1));
    var inPlace = new boolean[variants.size()];
    for (int k = 0; k < inPlace.length; k++) {
      int index = k;
      inPlace[k] = lives.stream().allMatch(life -> life.canBeInPlace(index, variants.get(index)));
      if (inPlace[k]) {
        lives.forEach(life -> life.mergeCollective(index));
      }
    }
    lives.forEach(life -> life.mergeShares(variants, groupSize));
    lives.forEach(life -> life.mergeLocal(lives.size() == 1));
    return inPlace;
  }

  /** {@return what the draft takes on the rank that needs most} */
  Figures figures() {
    return new Figures(
        lives.stream().mapToLong(Liveness::peakBytes).max().orElse(0) + workspaces.total(),
        schedules.stream().mapToDouble(Schedule::micros).max().orElse(0));
  }

  Allocate.Result allocate() {
    return Allocate.run(realized, schedules, lives, workspaces);
  }
}
