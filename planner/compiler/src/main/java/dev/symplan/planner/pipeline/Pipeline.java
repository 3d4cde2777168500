package dev.symplan.planner.pipeline;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.Facts;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.Pass;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.ProgramPass;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.ElideBarriers;
import dev.symplan.planner.pass.place.MeasureDraft;
import dev.symplan.planner.pass.place.MergeStorages;
import dev.symplan.planner.pass.place.ReserveWorkspaces;
import dev.symplan.planner.pass.place.ScheduleSteps;
import dev.symplan.planner.pass.rewrite.ConvertFirst;
import dev.symplan.planner.pass.rewrite.FoldConstants;
import dev.symplan.planner.pass.rewrite.FoldMasks;
import dev.symplan.planner.pass.rewrite.GatherFirst;
import dev.symplan.planner.pass.rewrite.Groups;
import dev.symplan.planner.pass.rewrite.JoinSlices;
import dev.symplan.planner.pass.rewrite.LiftElementwise;
import dev.symplan.planner.pass.rewrite.LowerAttention;
import dev.symplan.planner.pass.rewrite.NormalizeGraphs;
import dev.symplan.planner.pass.rewrite.RepeatLast;
import dev.symplan.planner.pass.rewrite.ReshapeFirst;
import dev.symplan.planner.pass.rewrite.SendParts;
import dev.symplan.planner.pass.rewrite.ShareHeads;
import dev.symplan.planner.pass.rewrite.SinkConversions;
import dev.symplan.planner.pass.rewrite.SinkElementwise;
import dev.symplan.planner.pass.select.AttachEpilogues;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.Plan;
import java.util.List;
import java.util.Optional;

/** Turns a program into its plan: the list of passes, in their order. */
public final class Pipeline {

  /** The passes before offsets are assigned. The searches run these for each candidate. */
  private static final ImmutableList<GraphPass> DRAFT =
      ImmutableList.of(
          new SelectVariants(),
          // The copies depend on what the variants need. After this, the ops are final.
          new RealizeOperands(),
          // A copy between a collective and the ops behind it keeps these out of its kernel.
          new AttachEpilogues(),
          new ScheduleSteps(),
          // Live ranges are counted in steps, and so need their order.
          new MergeStorages(),
          // Collectives that run one after the other share a workspace.
          new ReserveWorkspaces(),
          new MeasureDraft());

  /** All passes. One whose facts are known already, from a search, does nothing. */
  private static final ImmutableList<Pass> PASSES =
      ImmutableList.<Pass>builder()
          // No other pass needs to handle groups or ranks that do not fit.
          .add(new CheckProgram())
          // All others see functional graphs without dead code.
          .add(new NormalizeGraphs())
          // Ops that only computed a mask are dead then, and take no memory from here on.
          .add(new FoldMasks())
          // How attention is computed depends on its mask and on strides, which both end here.
          .add(new ShareHeads())
          .add(new LowerAttention())
          // Elements that a gather does not pick are not computed then, and no kernel holds them.
          .add(new GatherFirst())
          // Concatenations can be in kernels that slices cannot be in.
          .add(new JoinSlices())
          // The searches price collectives by what they send.
          .add(new ConvertFirst())
          // Only a conversion that nothing else reads can move.
          .add(new SinkConversions())
          // A view of what a kernel makes ends the kernel.
          .add(new RepeatLast())
          // Only ops of one shape can be one kernel. Conversions sink with the views of them.
          .add(new ReshapeFirst())
          // The searches price kernels, so they must know which ops become one.
          .add(new SinkElementwise())
          // Ops that sank may be read by others in the same kernel.
          .add(new LiftElementwise())
          // Kernels are known by now, and the searches price those of a run.
          .add(new FoldConstants())
          // A gather that moves rows needs no copy of what it sends either.
          .add(SendParts.ofGathers())
          // A collective that moves rows stays by itself, and its copies take no memory from here
          // on.
          .add(RewriteSearch.layouts(DRAFT))
          // Those that move rows have no copies of slices any more, but may have one of a part.
          .add(SendParts.ofAll())
          // Fewer collectives first: what is left may be worth splitting.
          .add(RewriteSearch.bucket(DRAFT))
          .add(RewriteSearch.chunk(DRAFT))
          // An all_reduce in pieces runs beside its product, and has its rows in several tensors.
          .add(RewriteSearch.sequenceParallel(DRAFT))
          // Last, so that merged collectives and pieces become hierarchical, too.
          .add(RewriteSearch.hierarchies(DRAFT))
          // Rewrites change how long tensors live, and so which order is best.
          .add(new OrderSearch(DRAFT))
          // The order decides which tensors have to be computed again.
          .add(new FitMemory(DRAFT))
          .addAll(DRAFT)
          .add(new AllocateMemory())
          // A barrier is redundant or not depending on what lies in the same memory.
          .add(new ElideBarriers())
          .add(new SealPlan())
          .add(new VerifyPlan())
          .build();

  private Pipeline() {}

  /** {@return the passes in the order in which they run} */
  public static ImmutableList<Pass> passes() {
    return PASSES;
  }

  /**
   * {@return the plan of a program}
   *
   * @param target the machine; by default, H200s of one host
   * @param warnings the warnings of the reader of the program
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
    int ranks = graphOfRank.size();
    var machine =
        target.orElseGet(() -> Target.defaultFor(options.hosts().map(Hosts::most).orElse(ranks)));
    var topology = topology(options.hosts(), graphOfRank, machine);
    var grouped = Groups.withWorld(program, graphOfRank);
    Groups.checkRanks(grouped.groups(), graphOfRank);
    var context =
        new PassContext(grouped, graphOfRank, machine, topology, options, warnings, observer);
    var state = new PlanState(ImmutableList.of(), Facts.NONE);
    for (var pass : PASSES) {
      state = run(pass, state, context);
      observer.after(pass, state, context);
    }
    return state.get(SealPlan.PLAN);
  }

  private static Topology topology(Optional<Hosts> hosts, List<Graph> graphOfRank, Target target) {
    int ranks = graphOfRank.size();
    var span = graphOfRank.getFirst().span();
    if (hosts.isEmpty()) {
      return Topology.of(ranks, target);
    }
    int stated = hosts.get().ranks();
    if (stated != ranks) {
      throw badHosts(
          span,
          "the hosts have %s, but the number of ranks is %s"
              .formatted(Units.count(stated, "rank"), ranks));
    }
    int most = hosts.get().most();
    if (most > target.gpus()) {
      throw badHosts(
          span,
          "a host has %s, but a host of %s has %s"
              .formatted(
                  Units.count(most, "rank"), target.name(), Units.count(target.gpus(), "GPU")));
    }
    return Topology.ofHosts(hosts.get(), target);
  }

  private static CompileException badHosts(Span span, String message) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_OPTION,
            span,
            message,
            "--hosts 2x8,4 means two hosts of 8 ranks and one of 4"));
  }

  private static PlanState run(Pass pass, PlanState state, PassContext context) {
    return switch (pass) {
      case GraphPass own ->
          new PlanState(
              state.graphs().stream()
                  .map(graph -> run(own, graph, context))
                  .collect(toImmutableList()),
              state.facts());
      case ProgramPass all -> context.observer().time(all, () -> all.run(state, context));
    };
  }

  /** {@return the state with the facts of a pass, unless it has them} */
  static GraphState run(GraphPass pass, GraphState state, PassContext context) {
    boolean known = !pass.gives().isEmpty() && state.facts().known().containsAll(pass.gives());
    return known ? state : context.observer().time(pass, () -> pass.run(state, context));
  }

  /** {@return a candidate of a search with what some passes find out about it} */
  static GraphState runAll(List<GraphPass> passes, GraphState candidate, PassContext context) {
    var state = candidate;
    for (var pass : passes) {
      state = run(pass, state, context);
      context.observer().candidate(pass, state);
    }
    return state;
  }
}
