package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.graph.RankAgreement;
import dev.symplan.ir.graph.RankNumbers;
import dev.symplan.ir.joint.BorderCheck;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.Facts;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.ProgramPass;
import dev.symplan.planner.pass.RankClass;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.analysis.LateWrites;
import dev.symplan.planner.pass.analysis.LazyViews;
import dev.symplan.planner.pass.analysis.OverlappingWrites;
import dev.symplan.planner.pass.analysis.SpaceChoice;
import dev.symplan.planner.pass.rewrite.Groups;
import java.util.stream.IntStream;

/** Refuses programs whose ranks, groups or named tensors do not fit, and finds the rank classes. */
final class CheckProgram extends ProgramPass {
  private static final ImmutableSet<String> OF_PLANS = ImmutableSet.of("fetch", "offload_");

  CheckProgram() {
    super("source", facts(), facts());
  }

  @Override
  public PlanState run(PlanState state, PassContext context) {
    var program = context.program();
    var graphOfRank = context.graphOfRank();
    var distinct = GraphChoice.distinct(graphOfRank);
    var sink = new DiagnosticSink();
    RankAgreement.check(
        new Program(program.groups(), program.declarations(), distinct, program.endNotes()), sink);
    sink.throwIfErrors();
    BorderCheck.check(distinct, sink);
    Groups.check(program.groups(), graphOfRank, sink);
    distinct.forEach(graph -> checkHostCopies(graph, sink));
    distinct.forEach(graph -> RankNumbers.check(graph, graphOfRank.size(), sink));
    sink.throwIfErrors();
    SpaceChoice.checkNames(context.options(), distinct);
    var classes = ImmutableList.<RankClass>builder();
    for (var graph : distinct) {
      var analyses = analyses(graph, context);
      if (!context.options().acrossGraphs()) {
        LateWrites.check(analyses, sink);
      }
      LazyViews.check(analyses, sink);
      OverlappingWrites.check(analyses, sink);
      classes.add(new RankClass(ranks(graph, graphOfRank), analyses));
    }
    sink.throwIfErrors();
    var all = classes.build();
    var stages =
        context.stages().graphs().stream()
            .map(
                stage -> stage.stream().mapToObj(all::get).collect(ImmutableList.toImmutableList()))
            .map(own -> new GraphState(own, Facts.NONE))
            .collect(ImmutableList.toImmutableList());
    return new PlanState(stages, state.facts());
  }

  /**
   * Refuses waits for copies, as planning may put something between a copy and its wait; copies of
   * inputs that the planner keeps in the host's memory, which only plans have; and copies of
   * tensors with gaps, as the copy would have what is in the gaps.
   */
  private static void checkHostCopies(Graph graph, DiagnosticSink sink) {
    for (var op : Parallel.filter(graph.ops(), CheckProgram::isHostCopy)) {
      if (op.def().has(OpTrait.HOST_COPY_END)) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.UNSUPPORTED,
                op.span(),
                "%s is for plans, not for graphs".formatted(op.def().name()),
                "remove it: the planner waits for copies where their results are needed"));
      } else if (OF_PLANS.contains(op.def().name().name())) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.UNSUPPORTED,
                op.span(),
                "%s is for plans, not for graphs".formatted(op.def().name()),
                "use symplan::reload and symplan::offload, whose results are new tensors"));
      } else if (!op.operands().getFirst().tensor().isDense()) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.UNSUPPORTED,
                op.span(),
                "%s copies bytes, and %s has gaps"
                    .formatted(op.def().name(), op.operands().getFirst().name()),
                op.operands().getFirst().tensor().space() == MemorySpace.HOST
                    ? "symplan::reload all of it, and take the part then"
                    : "aten::clone it before"));
      }
    }
  }

  private static boolean isHostCopy(Op op) {
    return op.def().has(OpTrait.HOST_COPY) || op.def().has(OpTrait.HOST_COPY_END);
  }

  private static Analyses analyses(Graph graph, PassContext context) {
    var options = context.options();
    return new Analyses(
        graph,
        SpaceChoice.of(options, graph),
        context.costs(),
        options.fusion(),
        options.rewrites().layouts());
  }

  private static ImmutableIntArray ranks(Graph graph, ImmutableList<Graph> graphOfRank) {
    return ImmutableIntArray.copyOf(
        IntStream.range(0, graphOfRank.size()).filter(rank -> graphOfRank.get(rank) == graph));
  }
}
