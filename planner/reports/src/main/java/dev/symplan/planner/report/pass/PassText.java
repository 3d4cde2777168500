package dev.symplan.planner.report.pass;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.ir.text.RankText;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.Pass;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.ElideBarriers;
import dev.symplan.planner.pass.place.MeasureDraft;
import dev.symplan.planner.pass.place.MergeStorages;
import dev.symplan.planner.pass.place.ReserveWorkspaces;
import dev.symplan.planner.pass.place.ScheduleSteps;
import dev.symplan.planner.pass.place.Workspaces;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.pipeline.SealPlan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Table;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The state of a program after a pass, as text. */
final class PassText {

  /** Prints one fact. */
  private record Printer(String extension, TextOf text) {}

  private interface TextOf {
    String print(PlanState state, PassContext context);
  }

  private interface StageText {
    String print(GraphState stage, PassContext context);
  }

  private static final ImmutableMap<Fact<?>, Printer> PRINTERS =
      ImmutableMap.<Fact<?>, Printer>builder()
          .put(SelectVariants.SELECTIONS, new Printer("txt", ofStages(PassText::selections)))
          .put(RealizeOperands.REALIZED, new Printer("graph", PassText::realized))
          .put(ScheduleSteps.SCHEDULES, new Printer("txt", ofStages(PassText::schedules)))
          .put(MergeStorages.LIFETIMES, new Printer("txt", ofStages(PassText::lifetimes)))
          .put(ReserveWorkspaces.WORKSPACES, new Printer("txt", ofStages(PassText::workspaces)))
          .put(MeasureDraft.FIGURES, new Printer("txt", ofStages(PassText::figures)))
          .put(
              AllocateMemory.PLACED,
              new Printer("txt", views(AllocateMemory.PLACED, View.VALUES, View.MEMORY)))
          .put(
              ElideBarriers.RANK_PLANS,
              new Printer("txt", views(ElideBarriers.RANK_PLANS, View.SCHEDULE)))
          .put(SealPlan.PLAN, new Printer("json", (s, c) -> PlanFile.toJson(s.get(SealPlan.PLAN))))
          .build();

  private PassText() {}

  /**
   * {@return the texts of a pass's result, by extension of the file}
   *
   * <p>{@code graph} is a source that can be compiled, {@code json} a plan file, {@code txt} a
   * table. A pass that only changes the graphs gives these; one that only checks gives nothing.
   */
  static Map<String, String> of(Pass pass, PlanState state, PassContext context) {
    var texts = new TreeMap<String, String>();
    for (var fact : pass.gives()) {
      if (PRINTERS.get(fact) instanceof Printer printer) {
        texts.merge(printer.extension(), printer.text().print(state, context), String::concat);
      }
    }
    if (texts.isEmpty() && !state.facts().known().contains(SealPlan.PLAN)) {
      texts.put("graph", program(graphs(state), context));
    }
    return texts;
  }

  private static ImmutableList<Graph> graphs(PlanState state) {
    return state.graphs().stream()
        .flatMap(stage -> stage.graphs().stream())
        .collect(ImmutableList.toImmutableList());
  }

  private static String program(ImmutableList<Graph> graphs, PassContext context) {
    var given = context.program();
    return GraphPrinter.print(
        new Program(
            context.groups().used(given.groups(), graphs),
            given.declarations(),
            graphs,
            Notes.NONE));
  }

  private static String selections(GraphState state, PassContext context) {
    var table = new Table("collective", "variant", "verdict", "detail", "predicted", "copies");
    var selections = state.get(SelectVariants.SELECTIONS);
    var collectives = state.analyses().getFirst().collectives();
    for (int k = 0; k < selections.size(); k++) {
      for (var verdict : selections.get(k).verdicts()) {
        boolean eligible = verdict.reason().eligible();
        table.row(
            collectives.get(k).name(),
            verdict.variant().text(),
            verdict.reason().name().toLowerCase(Locale.ROOT),
            verdict.detail(),
            eligible ? Units.micros(verdict.transferMicros()) : "",
            eligible ? Units.micros(verdict.stagingMicros()) : "");
      }
    }
    return table.render();
  }

  private static String realized(PlanState state, PassContext context) {
    return program(
        state.graphs().stream()
            .flatMap(stage -> stage.get(RealizeOperands.REALIZED).stream())
            .map(Realized::graph)
            .collect(ImmutableList.toImmutableList()),
        context);
  }

  private static String schedules(GraphState state, PassContext context) {
    var graphs = state.get(RealizeOperands.REALIZED);
    var schedules = state.get(ScheduleSteps.SCHEDULES);
    return ofEachClass(
        state,
        c -> {
          var table = new Table("step", "stream", "what");
          var schedule = schedules.get(c);
          for (int i = 0; i < schedule.steps().size(); i++) {
            var step = schedule.steps().get(i);
            var stream = step instanceof Step.Start(int k) ? schedule.streams().get(k).text() : "";
            table.row(Integer.toString(i), stream, what(step, graphs.get(c)));
          }
          return table.render();
        });
  }

  private static String what(Step step, Realized graph) {
    return switch (step) {
      case Step.Compute(int op) -> op(graph, op);
      case Step.Fused(var ops) ->
          ops.stream().mapToObj(op -> op(graph, op)).collect(Collectors.joining("; "));
      case Step.Start(int k) -> op(graph, graph.collectives().get(k).index());
      case Step.Join(int k) -> "wait for " + graph.collectives().get(k).name();
    };
  }

  private static String op(Realized graph, int index) {
    return graph.graph().ops().get(index).label();
  }

  private static String lifetimes(GraphState state, PassContext context) {
    var graphs = state.get(RealizeOperands.REALIZED);
    var lifetimes = state.get(MergeStorages.LIFETIMES);
    return ofEachClass(
        state,
        c -> {
          var table = new Table("storage", "bytes", "first step", "last step", "arena", "in");
          var layout = lifetimes.get(c).layout();
          var aliases = graphs.get(c).aliases();
          for (var storage : aliases.storages()) {
            int id = storage.id();
            if (lifetimes.get(c).liveness().hasMemory(id)) {
              table.row(
                  storage.value().name(),
                  Long.toString(storage.bytes()),
                  Integer.toString(lifetimes.get(c).liveness().first(id)),
                  Integer.toString(lifetimes.get(c).liveness().last(id)),
                  (layout.isSymmetric(id) ? "symmetric" : graphs.get(c).arena(id).text()),
                  layout.root(id) == id
                      ? ""
                      : aliases.storage(layout.root(id)).value().name() + "+" + layout.offset(id));
            }
          }
          return table.render();
        });
  }

  private static String workspaces(GraphState state, PassContext context) {
    var table = new Table("workspace", "bytes");
    var workspaces = state.get(ReserveWorkspaces.WORKSPACES);
    for (int w = 0; w < workspaces.count(); w++) {
      table.row(Workspaces.name(w), Long.toString(workspaces.bytes().get(w)));
    }
    return table.render();
  }

  private static String figures(GraphState state, PassContext context) {
    var figures = state.get(MeasureDraft.FIGURES);
    var table = new Table("live at most", "one run");
    table.row(Units.bytes(figures.peakBytes()), Units.micros(figures.micros()));
    return table.render();
  }

  private static TextOf views(Fact<ImmutableList<RankPlan>> plans, View... views) {
    return (state, context) ->
        TextRenderer.render(
            PlanReport.of(SealPlan.plan(state, context, plans), ImmutableList.copyOf(views)));
  }

  /** The text of each stage, below its ranks where there are several. */
  private static TextOf ofStages(StageText text) {
    return (state, context) ->
        state.graphs().size() == 1
            ? text.print(state.graphs().getFirst(), context)
            : state.graphs().stream()
                .map(
                    stage ->
                        "stage of ranks %s\n%s".formatted(ranks(stage), text.print(stage, context)))
                .collect(Collectors.joining("\n"));
  }

  private static String ranks(GraphState stage) {
    return RankText.list(
        stage.classes().stream().flatMap(own -> own.ranks().asList().stream()).sorted().toList());
  }

  /** The text of each rank class, below the ranks where there are several. */
  private static String ofEachClass(GraphState graph, IntFunction<String> text) {
    if (graph.classes().size() == 1) {
      return text.apply(0);
    }
    return IntStream.range(0, graph.classes().size())
        .mapToObj(
            c ->
                "ranks "
                    + RankText.list(graph.classes().get(c).ranks().asList())
                    + "\n"
                    + text.apply(c))
        .collect(Collectors.joining("\n"));
  }
}
