package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Maps;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.graph.RankAgreement;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.PassObserver.Pass;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.analysis.OperandConstraints;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import dev.symplan.planner.pass.analysis.RankGraph;
import dev.symplan.planner.pass.analysis.SpaceChoice;
import dev.symplan.planner.pass.order.CandidateOrders;
import dev.symplan.planner.pass.place.Allocate;
import dev.symplan.planner.pass.place.BarrierElision;
import dev.symplan.planner.pass.place.Liveness;
import dev.symplan.planner.pass.place.Schedule;
import dev.symplan.planner.pass.rewrite.Groups;
import dev.symplan.planner.pass.rewrite.Normalize;
import dev.symplan.planner.pass.select.Realize;
import dev.symplan.planner.pass.select.Select;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.PlanDigest;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.verify.PlanVerifier;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;

/**
 * From graphs to a plan: the passes, in order.
 *
 * <ol>
 *   <li>{@link Normalize} first, so that the others see functional graphs only.
 *   <li>{@link Aliases}: storages, and what shares them.
 *   <li>{@link RewriteSearch}, which makes other collectives of some, so that the passes after it
 *       see only those.
 *   <li>{@link Select} needs to know what could be realized ({@link OperandConstraints}) and
 *       overlapped ({@link OverlapWindows}), as copies and hidden time decide which variant is
 *       cheapest.
 *   <li>{@link Realize} puts in the copies that the selected variants need; the graph is final.
 *   <li>{@link Fusion} makes one step of elementwise ops that stand next to each other.
 *   <li>{@link Schedule} orders the steps of the final graph.
 *   <li>{@link Liveness} and {@link Allocate} need the order.
 *   <li>{@link CandidateOrders} proposes other orders of what {@link Normalize} gave; each goes
 *       through the passes above, and {@link OrderSearch} chooses by what they make of it.
 *   <li>{@link BarrierElision} needs the places: what another barrier makes redundant depends on
 *       what lies in the same memory. So it never costs memory either.
 *   <li>{@link PlanVerifier} checks the finished plan against rules of its own.
 * </ol>
 */
public final class Pipeline {
  private final Target target;
  private final CompileOptions options;
  private final CostModel costs;
  private final PassObserver observer;

  private Pipeline(Target target, CompileOptions options, PassObserver observer) {
    this.observer = observer;
    this.target = target;
    this.options = options;
    this.costs = new CostModel(target);
  }

  /**
   * {@return the plan of a program}
   *
   * @throws CompileException when the program or the options are wrong
   * @throws IllegalStateException when the plan breaks a rule: an error of the planner's
   */
  public static Plan run(
      Program program,
      Optional<Target> target,
      CompileOptions options,
      List<Diagnostic> warnings,
      PassObserver observer) {
    var graphOfRank = GraphChoice.of(program, options);
    var machine = target.orElseGet(() -> Target.defaultFor(graphOfRank.size()));
    return new Pipeline(machine, options, observer).plan(program, graphOfRank, warnings);
  }

  private Plan plan(Program program, List<Graph> graphOfRank, List<Diagnostic> warnings) {
    var sink = new DiagnosticSink();
    var distinct = GraphChoice.distinct(graphOfRank);
    RankAgreement.check(
        new Program(program.groups(), program.declarations(), distinct, program.endNotes()), sink);
    sink.throwIfErrors();
    Groups.check(program.groups(), graphOfRank, sink);
    sink.throwIfErrors();
    var byName = Maps.uniqueIndex(program.groups(), ProcessGroup::name);
    Function<String, ProcessGroup> groups = name -> Objects.requireNonNull(byName.get(name));

    SpaceChoice.checkNames(options, distinct);
    var spaces = distinct.stream().map(graph -> SpaceChoice.of(options, graph)).toList();
    Function<List<Graph>, PlanDraft> draftOf =
        graphs -> PlanDraft.of(graphs, spaces, target, options, costs, groups, observer);
    Function<List<Graph>, Program> programOf =
        graphs ->
            new Program(
                program.groups(), program.declarations(), ImmutableList.copyOf(graphs), Notes.NONE);
    observer.graphs(Pass.SOURCE, programOf.apply(distinct));
    var normalized =
        observer.time(Pass.NORMALIZE, () -> distinct.stream().map(Normalize::run).toList());
    observer.graphs(Pass.NORMALIZE, programOf.apply(normalized));
    var rewritten =
        RewriteSearch.run(
            normalized,
            target,
            options,
            costs,
            groups,
            draftOf,
            (pass, graphs) -> observer.graphs(pass, programOf.apply(graphs)),
            observer);
    var ordering =
        observer.time(
            Pass.REORDER, () -> OrderSearch.choose(rewritten.draft(), draftOf::apply, options));
    var draft = ordering.draft();
    var memory = ordering.memory();
    observer.graphs(
        Pass.REORDER, programOf.apply(draft.graphs().stream().map(RankGraph::graph).toList()));

    var rankPlans = ImmutableList.<RankPlan>builder();
    for (int g = 0; g < memory.ranks().size(); g++) {
      var own = memory.ranks().get(g);
      rankPlans.add(
          new RankPlan(
              draft.realized().get(g).graph(),
              own.placements(),
              own.buffers(),
              draft.schedules().get(g).steps(),
              collectives(draft, g, own.buffers().size() - draft.workspaces().count()),
              own.local()));
    }
    var planOfRank = GraphChoice.indices(graphOfRank);
    Function<ImmutableList<RankPlan>, Plan> planOf =
        plans ->
            new Plan(
                distinct.getFirst().name(),
                target,
                options.multicast(),
                program.groups(),
                program.declarations(),
                plans,
                planOfRank,
                memory.symmetric(),
                PlanDigest.of(memory.symmetric().bytes(), program.groups(), plans, planOfRank),
                rewritten.rewrites(),
                ordering.reordering(),
                ImmutableList.copyOf(warnings));
    var allocated = rankPlans.build();
    if (observer != PassObserver.NONE) {
      var before = planOf.apply(allocated);
      observer.plan(Pass.SELECT, before);
      observer.graphs(
          Pass.REALIZE, programOf.apply(allocated.stream().map(RankPlan::graph).toList()));
      observer.plan(Pass.SCHEDULE, before);
      observer.plan(Pass.ALLOCATE, before);
    }
    var plan =
        planOf.apply(observer.time(Pass.ELIDE_BARRIERS, () -> BarrierElision.run(allocated)));
    observer.plan(Pass.ELIDE_BARRIERS, plan);
    var violations = observer.time(Pass.VERIFY, () -> PlanVerifier.verify(plan));
    observer.plan(Pass.VERIFY, plan);
    if (!violations.isEmpty()) {
      throw new IllegalStateException("the plan is unsafe: " + violations.getFirst());
    }
    return plan;
  }

  private static ImmutableList<CollectivePlan> collectives(
      PlanDraft draft, int rankGraph, int firstWorkspace) {
    var graph = draft.realized().get(rankGraph);
    var plans = ImmutableList.<CollectivePlan>builder();
    for (int k = 0; k < draft.selections().size(); k++) {
      var collective = graph.collectives().get(k);
      var selection = draft.selections().get(k);
      boolean alone = selection.variant() == Variant.LOCAL || selection.variant().needsWorkspace();
      Barrier barrier = alone ? new Barrier.None() : new Barrier.Own();
      int workspace = draft.workspaces().ofCollective().get(k);
      plans.add(
          new CollectivePlan(
              collective.index(),
              collective.kind(),
              collective.group(),
              collective.reduceOp(),
              collective.root(),
              ids(collective.operands()),
              ids(collective.results()),
              selection.variant(),
              draft.schedules().get(rankGraph).streams().get(k),
              barrier,
              barrier,
              draft.inPlace()[k],
              workspace < 0 ? workspace : firstWorkspace + workspace,
              selection.verdicts(),
              placed(collective, graph.args().get(k), draft.inPlace()[k])));
    }
    return plans.build();
  }

  /** Once it is known, what says that results take their operands' places. */
  private static ImmutableList<ArgDecision> placed(
      Collective collective, ImmutableList<ArgDecision> args, boolean inPlace) {
    if (!inPlace) {
      return args;
    }
    int operands = collective.operands().size();
    var placed = ImmutableList.<ArgDecision>builder();
    for (int i = 0; i < args.size(); i++) {
      var arg = args.get(i);
      placed.add(
          arg.reason() == ArgDecision.Reason.RESULT_WRITES
              ? new ArgDecision(
                  arg.result(),
                  arg.value(),
                  arg.realization(),
                  ArgDecision.Reason.IN_PLACE,
                  args.get(i - operands).value(),
                  arg.bytes())
              : arg);
    }
    return placed.build();
  }

  private static ImmutableList<Integer> ids(ImmutableList<Value> values) {
    return values.stream().map(Value::id).collect(ImmutableList.toImmutableList());
  }
}
