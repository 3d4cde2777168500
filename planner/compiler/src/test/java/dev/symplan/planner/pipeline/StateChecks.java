package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.Pass;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.ElideBarriers;
import dev.symplan.planner.pass.place.Lifetimes;
import dev.symplan.planner.pass.place.MergeStorages;
import dev.symplan.planner.pass.place.ReserveWorkspaces;
import dev.symplan.planner.pass.place.Schedule;
import dev.symplan.planner.pass.place.ScheduleSteps;
import dev.symplan.planner.pass.select.AttachEpilogues;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Optional;

/**
 * Checks the structure of the state after each pass, candidates of searches included: that its
 * parts fit each other. What a plan must not do to memory is the verifier's matter.
 */
public final class StateChecks implements PassObserver {

  /** How many states were checked. */
  private int states;

  public int states() {
    return states;
  }

  @Override
  public void after(Pass pass, PlanState state, PassContext context) {
    state.graphs().forEach(graph -> check(pass, graph));
    for (var fact : pass.gives()) {
      boolean known =
          state.facts().known().contains(fact)
              || state.graphs().stream().allMatch(g -> g.facts().known().contains(fact));
      require(known, pass, "%s is not known", fact);
    }
  }

  @Override
  public void candidate(Pass pass, GraphState state) {
    check(pass, state);
  }

  /**
   * @throws AssertionError naming the pass, where parts of the state do not fit
   */
  void check(Pass pass, GraphState state) {
    states++;
    var first = state.analyses().getFirst();
    var ranks = new HashSet<Integer>();
    for (var own : state.classes()) {
      own.ranks()
          .forEach(rank -> require(ranks.add(rank), pass, "rank %s is in two classes", rank));
      checkGraph(pass, own.graph());
      require(
          own.analyses().collectives().size() == first.collectives().size(),
          pass,
          "ranks %s have another number of collectives",
          own.ranks());
      for (int k = 0; k < first.collectives().size(); k++) {
        var kind = own.analyses().collectives().get(k).kind();
        require(kind == first.collectives().get(k).kind(), pass, "collective %s has two kinds", k);
      }
    }
    int count = first.collectives().size();
    var known = state.facts().known();
    if (known.contains(SelectVariants.SELECTIONS)) {
      var selections = state.get(SelectVariants.SELECTIONS);
      requireSize(count, selections, pass, "selections");
      for (int k = 0; k < count; k++) {
        var kind = first.collectives().get(k).kind();
        var variant = selections.get(k).variant();
        require(variant.implementsKind(kind), pass, "%s is not a variant of %s", variant, kind);
      }
    }
    if (known.contains(RealizeOperands.REALIZED)) {
      requireSize(state.classes().size(), state.get(RealizeOperands.REALIZED), pass, "graphs");
      state.get(RealizeOperands.REALIZED).forEach(graph -> checkRealized(pass, graph, count));
    }
    for (int c = 0; c < state.classes().size(); c++) {
      if (known.contains(ScheduleSteps.SCHEDULES)) {
        var graph = state.get(RealizeOperands.REALIZED).get(c);
        var epilogues = state.get(AttachEpilogues.EPILOGUES);
        requireSize(count, epilogues, pass, "epilogues");
        checkSchedule(pass, graph, epilogues, state.get(ScheduleSteps.SCHEDULES).get(c));
        if (known.contains(MergeStorages.LIFETIMES)) {
          checkLifetimes(
              pass,
              graph,
              state.get(ScheduleSteps.SCHEDULES).get(c),
              state.get(MergeStorages.LIFETIMES).get(c));
        }
      }
    }
    if (known.contains(MergeStorages.IN_PLACE)) {
      requireSize(count, state.get(MergeStorages.IN_PLACE), pass, "in-place collectives");
    }
    if (known.contains(ReserveWorkspaces.WORKSPACES)) {
      checkWorkspaces(pass, state, count);
    }
    if (known.contains(AllocateMemory.PLACED)) {
      requireSize(state.classes().size(), state.get(AllocateMemory.PLACED), pass, "placed plans");
      for (var plan : state.get(AllocateMemory.PLACED)) {
        require(plan.graph().numbered() == plan.graph(), pass, "values have gaps in their ids");
      }
    }
    if (known.contains(ElideBarriers.RANK_PLANS)) {
      requireSize(state.classes().size(), state.get(ElideBarriers.RANK_PLANS), pass, "plans");
    }
  }

  private static void checkGraph(Pass pass, Graph graph) {
    var defined = new boolean[graph.valueCount()];
    var names = new HashSet<String>();
    for (var input : graph.inputs()) {
      defined[input.id()] = true;
      require(names.add(input.name()), pass, "the name '%s' is taken", input.name());
    }
    for (var op : graph.ops()) {
      for (var operand : op.operands()) {
        require(defined[operand.id()], pass, "'%s' is used before it is made", operand.name());
      }
      var inferred = op.infer();
      for (int i = 0; i < op.results().size(); i++) {
        var result = op.results().get(i);
        defined[result.id()] = true;
        require(
            result.name().isEmpty() || names.add(result.name()),
            pass,
            "the name '%s' is taken",
            result.name());
        // Where a tensor asks to be is not inferred, nor how the copy of an operand lies.
        boolean staged = op.def().name().toString().equals("symplan::stage");
        require(
            !(result.type() instanceof TensorType type)
                || (staged && inferred.get(i).allows(type))
                || inferred.get(i).type() instanceof TensorType given
                    && given.equals(type.withSpace(given.space())),
            pass,
            "'%s' has the type %s, not %s",
            result.name(),
            result.type(),
            inferred.get(i).type());
      }
    }
    for (var output : graph.outputValues()) {
      require(defined[output.id()], pass, "the output '%s' is not made", output.name());
    }
  }

  private static void checkRealized(Pass pass, Realized graph, int collectives) {
    checkGraph(pass, graph.graph());
    requireSize(collectives, graph.collectives(), pass, "collectives of the realized graph");
    requireSize(collectives, graph.variants(), pass, "variants");
    requireSize(graph.aliases().count(), graph.arenas(), pass, "arenas");
    for (int k = 0; k < collectives; k++) {
      var collective = graph.collectives().get(k);
      requireSize(
          collective.operands().size() + collective.results().size(),
          graph.args().get(k),
          pass,
          "decisions about tensors of a collective");
    }
  }

  private static void checkSchedule(
      Pass pass, Realized graph, ImmutableList<Optional<Epilogue>> epilogues, Schedule schedule) {
    int count = graph.collectives().size();
    var stepOf = new int[graph.graph().ops().size()];
    Arrays.fill(stepOf, -1);
    var ends = new int[count];
    Arrays.fill(ends, -1);
    for (int s = 0; s < schedule.steps().size(); s++) {
      switch (schedule.steps().get(s)) {
        case Step.Compute(int op) -> place(pass, stepOf, op, s);
        case Step.Fused(var ops) -> {
          int here = s;
          ops.forEach(op -> place(pass, stepOf, op, here));
        }
        case Step.Start(int k) -> {
          place(pass, stepOf, graph.collectives().get(k).index(), s);
          boolean behind = hasEpilogue(epilogues, k);
          int end = behind ? s + 1 : s;
          ends[k] = schedule.streams().get(k) == StreamKind.COMPUTE ? end : -1;
          require(
              !behind
                  || ends[k] == end
                      && (schedule.steps().get(end) instanceof Step.Fused
                          || schedule.steps().get(end) instanceof Step.Compute),
              pass,
              "collective %s has no step for its epilogue",
              k);
        }
        case Step.Join(int k) -> {
          require(ends[k] < 0, pass, "collective %s is joined twice or not beside compute", k);
          ends[k] = s;
        }
      }
    }
    for (int i = 0; i < stepOf.length; i++) {
      require(
          (stepOf[i] >= 0) == graph.aliases().runs(i), pass, "op %s runs in step %s", i, stepOf[i]);
      require(stepOf[i] == schedule.stepOfOp().get(i), pass, "op %s has another step", i);
    }
    for (int k = 0; k < count; k++) {
      require(ends[k] == schedule.endStep().get(k), pass, "collective %s ends elsewhere", k);
      require(ends[k] >= schedule.startStep().get(k), pass, "collective %s is not joined", k);
    }
    checkOperandsAreReady(pass, graph, epilogues, schedule, stepOf);
  }

  private static boolean hasEpilogue(ImmutableList<Optional<Epilogue>> epilogues, int k) {
    return epilogues.get(k).map(Epilogue::isFused).orElse(false);
  }

  private static void place(Pass pass, int[] stepOf, int op, int step) {
    require(stepOf[op] < 0, pass, "op %s runs twice", op);
    stepOf[op] = step;
  }

  private static void checkOperandsAreReady(
      Pass pass,
      Realized graph,
      ImmutableList<Optional<Epilogue>> epilogues,
      Schedule schedule,
      int[] stepOf) {
    var ready = new int[graph.aliases().count()];
    Arrays.fill(ready, -1);
    var endOf = new int[stepOf.length];
    System.arraycopy(stepOf, 0, endOf, 0, stepOf.length);
    for (int k = 0; k < graph.collectives().size(); k++) {
      // An epilogue takes what its collective gives before that ends.
      endOf[graph.collectives().get(k).index()] =
          (hasEpilogue(epilogues, k) ? schedule.startStep() : schedule.endStep()).get(k);
    }
    for (var storage : graph.aliases().storages()) {
      ready[storage.id()] = storage.isInput() ? -1 : endOf[storage.def()];
    }
    for (int i = 0; i < stepOf.length; i++) {
      if (stepOf[i] < 0) {
        continue;
      }
      for (var operand : graph.graph().ops().get(i).operands()) {
        int storage = graph.aliases().id(operand);
        require(
            storage < 0
                || ready[storage] <= stepOf[i]
                    && (ready[storage] < stepOf[i]
                        || schedule.steps().get(stepOf[i]) instanceof Step.Fused),
            pass,
            "op %s of step %s reads '%s', which is ready after step %s",
            i,
            stepOf[i],
            operand.name(),
            storage < 0 ? -1 : ready[storage]);
      }
    }
  }

  private static void checkLifetimes(
      Pass pass, Realized graph, Schedule schedule, Lifetimes lifetimes) {
    var life = lifetimes.liveness();
    var layout = lifetimes.layout();
    for (var storage : graph.aliases().storages()) {
      int id = storage.id();
      require(layout.root(layout.root(id)) == layout.root(id), pass, "%s has no root", id);
      require(layout.offset(id) >= 0, pass, "%s begins before its root", id);
    }
    for (int i = 0; i < graph.graph().ops().size(); i++) {
      int step = schedule.stepOfOp().get(i);
      var op = graph.graph().ops().get(i);
      for (var values : ImmutableList.of(op.operands(), op.results())) {
        for (var value : values) {
          int storage = graph.aliases().id(value);
          require(
              step < 0
                  || storage < 0
                  || !life.hasMemory(storage)
                  || life.first(storage) <= step && step <= life.last(storage),
              pass,
              "'%s' does not live in step %s",
              value.name(),
              step);
        }
      }
    }
  }

  private static void checkWorkspaces(Pass pass, GraphState state, int count) {
    var workspaces = state.get(ReserveWorkspaces.WORKSPACES);
    require(workspaces.ofCollective().length() == count, pass, "workspaces of other collectives");
    var variants = state.get(RealizeOperands.REALIZED).getFirst().variants();
    for (int k = 0; k < count; k++) {
      int workspace = workspaces.ofCollective().get(k);
      require(
          variants.get(k).needsWorkspace()
              ? workspace >= 0 && workspace < workspaces.count()
              : workspace == CollectivePlan.NO_WORKSPACE,
          pass,
          "collective %s has workspace %s",
          k,
          workspace);
    }
  }

  private static void requireSize(int size, ImmutableList<?> list, Pass pass, String what) {
    require(list.size() == size, pass, "there are %s %s, not %s", list.size(), what, size);
  }

  private static void require(boolean holds, Pass pass, String message, Object... args) {
    if (!holds) {
      throw new AssertionError("after " + pass + ": " + message.formatted(args));
    }
  }
}
