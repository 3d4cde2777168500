package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Eligibility;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.OperandConstraints.OperandConstraint;
import dev.symplan.planner.pass.analysis.Prefetch;
import dev.symplan.planner.plan.Epilogue;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * Picks a variant for each collective: each one is eligible or rejected with a reason, and the
 * cheapest of the eligible is taken, copies into and out of symmetric memory included.
 *
 * <p>All ranks take the same variant, so where their graphs differ, a copy that one of them needs
 * counts for all.
 */
public final class Select {

  /**
   * The choice for one collective.
   *
   * @param differs for each operand, whether the ranks' graphs place it in different ways
   * @param epilogue whether the ops behind the collective shall run in its kernel, and why not
   */
  public record Selection(
      Variant variant,
      ImmutableList<Verdict> verdicts,
      ImmutableList<Boolean> differs,
      Epilogue.Reason epilogue) {}

  /**
   * The facts about one collective that all its variants share.
   *
   * @param reach of the groups that the ranks' graphs name, the one that is in most domains
   * @param bytes of the rank that sends most
   * @param room the compute that may run beside it, in µs
   */
  private record Choice(
      int k,
      Collective collective,
      Reach reach,
      long bytes,
      double room,
      ImmutableList<Boolean> differs) {}

  private final ImmutableList<Analyses> graphs;
  private final PassContext context;
  private final CompileOptions options;
  private final CostModel costs;
  private final Eligibility eligibility;
  private final ForcedVariants forcedVariants;
  private final boolean workspaces;

  /** One that only says what collectives would cost. */
  public Select(GraphState state, PassContext context) {
    this.graphs = state.analyses();
    this.context = context;
    this.options = context.options();
    this.costs = context.costs();
    this.eligibility = new Eligibility(context.target(), options.multicast(), options.backend());
    this.forcedVariants = new ForcedVariants(state, context);
    this.workspaces = !state.facts().find(SelectVariants.NO_WORKSPACES).orElse(false);
  }

  static ImmutableList<Selection> run(GraphState state, PassContext context) {
    var select = new Select(state, context);
    var ahead =
        select.graphs.stream()
            .map(_ -> new Prefetch(context.options().prefetch()))
            .collect(ImmutableList.toImmutableList());
    var rooms = new double[select.graphs.getFirst().collectives().size()];
    for (int k = 0; k < rooms.length; k++) {
      rooms[k] = select.hideableMicros(k, ahead);
    }
    select.graphs.forEach(Analyses::prepareCollectives);
    return Parallel.map(rooms.length, k -> select.choose(select.choice(k, rooms[k])));
  }

  /**
   * The compute beside the next collective that every rank has, if all start as early as they may.
   */
  private double hideableMicros(int k, ImmutableList<Prefetch> ahead) {
    double least = Double.POSITIVE_INFINITY;
    for (int g = 0; g < graphs.size(); g++) {
      var overlap = graphs.get(g).overlap();
      var window = overlap.window(k);
      int from = Math.max(window.earliest(), ahead.get(g).earliest(window));
      ahead.get(g).start(from, window);
      least = Math.min(least, overlap.workBetween(from, window.needed()));
    }
    return least;
  }

  private Choice choice(int k, double room) {
    return new Choice(
        k, graphs.getFirst().collectives().get(k), widest(k), mostBytes(k), room, differences(k));
  }

  private ImmutableList<Verdict> candidates(Choice choice) {
    var candidates = ImmutableList.<Verdict>builder();
    for (var spec : VariantSpec.ofKind(choice.collective().kind())) {
      candidates.add(judge(choice, spec.variant()));
    }
    return candidates.build();
  }

  private Selection choose(Choice choice) {
    var collective = choice.collective();
    var candidates = candidates(choice);
    var forced = forced(choice.k(), collective, candidates);
    var best =
        forced.orElseGet(
            () ->
                fastest(candidates, workspaces)
                    .or(() -> fastest(candidates, true))
                    .orElseThrow(() -> nothingEligible(collective, candidates)));
    var verdicts = ImmutableList.<Verdict>builder();
    for (var verdict : candidates) {
      verdicts.add(
          verdict == best ? chosen(verdict, forced.isPresent()) : other(verdict, best, forced));
    }
    return new Selection(
        best.variant(),
        verdicts.build(),
        choice.differs(),
        epilogue(choice, best.variant(), transfer(choice, best.variant())));
  }

  private static Optional<Verdict> fastest(List<Verdict> candidates, boolean workspaces) {
    return candidates.stream()
        .filter(verdict -> verdict.reason() == Reason.SLOWER)
        .filter(verdict -> workspaces || !verdict.variant().needsWorkspace())
        .reduce((a, b) -> b.totalMicros() < a.totalMicros() ? b : a);
  }

  private double transfer(Choice choice, Variant variant) {
    var collective = choice.collective();
    int tensors = collective.operands().size();
    return costs.transferMicros(
        collective.kind(), variant, choice.bytes(), tensors, choice.reach());
  }

  private long mostBytes(int k) {
    return graphs.stream().mapToLong(g -> g.collectives().get(k).bytes()).max().orElse(0);
  }

  /**
   * Whether the ops behind a collective run in its kernel as a variant: on all ranks, or on none.
   *
   * @param transfer the predicted time of the collective by itself
   */
  private Epilogue.Reason epilogue(Choice choice, Variant variant, double transfer) {
    if (!options.epilogues() || !options.fusion()) {
      return Epilogue.Reason.OFF;
    }
    var spec = VariantSpec.of(choice.collective().kind(), variant);
    if (!spec.takesEpilogues()) {
      return Epilogue.Reason.VARIANT;
    }
    double saved = savedMicros(choice, variant);
    if (Double.isNaN(saved)) {
      return Epilogue.Reason.ROWS;
    }
    if (spec.meetsBeforeEpilogue() && choice.bytes() > Epilogue.MAX_STORED_BYTES) {
      return Epilogue.Reason.LARGE;
    }
    return besideMicros(variant, transfer, choice.room()) < transfer - saved
        ? Epilogue.Reason.BESIDE_COMPUTE
        : Epilogue.Reason.FUSED;
  }

  private int ranks(Analyses graph, int k) {
    return context.groupSize(graph.collectives().get(k).group());
  }

  /** The time that an epilogue saves on the rank that gains least; NaN where one cannot have it. */
  private double savedMicros(Choice choice, Variant variant) {
    var spec = VariantSpec.of(choice.collective().kind(), variant);
    double least = Double.POSITIVE_INFINITY;
    for (var graph : graphs) {
      least =
          Math.min(
              least,
              graph
                  .epilogue(choice.k())
                  .filter(own -> own.fit(spec, ranks(graph, choice.k())))
                  .map(own -> own.savedMicros(costs, spec))
                  .orElse(Double.NaN));
    }
    return least;
  }

  private static Verdict chosen(Verdict verdict, boolean forced) {
    return withReason(verdict, forced ? Reason.FORCED : Reason.CHOSEN);
  }

  private static Verdict other(Verdict verdict, Verdict best, Optional<Verdict> forced) {
    if (verdict.reason() != Reason.SLOWER) {
      return verdict;
    }
    if (forced.isPresent()) {
      return withReason(verdict, Reason.NOT_FORCED);
    }
    return verdict.totalMicros() < best.totalMicros()
        ? withReason(verdict, Reason.NOT_WORTH_MEMORY)
        : verdict;
  }

  private static Verdict withReason(Verdict verdict, Reason reason) {
    return new Verdict(
        verdict.variant(),
        reason,
        verdict.detail(),
        verdict.transferMicros(),
        verdict.stagingMicros());
  }

  private Verdict judge(Choice choice, Variant variant) {
    int k = choice.k();
    var kind = choice.collective().kind();
    // Rows may differ from rank to rank, and the names and other parts of groups.
    for (var graph : graphs) {
      var own = graph.collectives().get(k);
      if (context.isBetweenStages(own.group()) && own.request().reachesPeers(variant)) {
        return new Verdict(variant, Reason.OTHER_STAGE, otherStage(own.group()), Double.NaN, 0);
      }
      var rejection =
          eligibility.reject(
              own.request(), variant, context.group(own.group()), context.groups().topology());
      if (rejection.isPresent()) {
        return new Verdict(
            variant, rejection.get().reason(), rejection.get().detail(), Double.NaN, 0);
      }
    }
    double alone = transfer(choice, variant);
    double maker = graphs.stream().mapToDouble(g -> g.makerMicros(k, variant)).min().orElseThrow();
    double transfer = costs.behindMicros(alone, maker);
    double saved =
        epilogue(choice, variant, alone) == Epilogue.Reason.FUSED
            ? savedMicros(choice, variant)
            : 0;
    double shown =
        saved > 0
            ? Math.max(0, alone - saved)
            : Math.min(transfer, shownMicros(variant, alone, choice.room()));
    boolean same = VariantSpec.of(kind, variant).numerics().isSameOnAllRanks();
    return new Verdict(
        variant,
        same ? Reason.SLOWER : Reason.NOT_NAMED,
        eligibleDetail(
            saved == 0 && shown < transfer,
            saved,
            saved == 0 && maker > 0,
            costs.isMeasured(kind, variant, choice.reach()),
            same),
        shown,
        staging(choice, variant));
  }

  private static String otherStage(String group) {
    return "ranks of group '%s' are in stages with different collectives".formatted(group);
  }

  private Reach widest(int k) {
    return graphs.stream()
        .map(graph -> context.reach(graph.collectives().get(k).group()))
        .max(Comparator.comparingInt(Reach::domains).thenComparingInt(reach -> -reach.fewest()))
        .orElseThrow();
  }

  private static String eligibleDetail(
      boolean beside, double saved, boolean joined, boolean measured, boolean same) {
    var words = ImmutableList.<String>builder();
    if (saved > 0) {
      words.add("less the %s that its epilogue saves".formatted(Units.micros(saved)));
    }
    if (beside) {
      words.add("beside compute");
    } else if (joined) {
      words.add("one kernel with the step before it");
    }
    if (!measured) {
      words.add("estimated");
    }
    if (!same) {
      words.add("only if named: ranks may get different bits");
    }
    return String.join(", ", words.build());
  }

  public boolean takesSeveral(VariantSpec spec) {
    return eligibility.takesSeveral(spec);
  }

  /** {@return the exposed time of a transfer where {@code room} µs of compute may run beside it} */
  public double shownMicros(Variant variant, double transfer, double room) {
    return Math.min(transfer, besideMicros(variant, transfer, room));
  }

  private double besideMicros(Variant variant, double transfer, double room) {
    double beside = options.overlap() ? room : 0;
    return costs.exposedMicros(variant, transfer, beside) + costs.forkJoinMicros();
  }

  private double staging(Choice choice, Variant variant) {
    var kind = choice.collective().kind();
    double worst = 0;
    for (var graph : graphs) {
      double sum = 0;
      var operands = graph.constraints().operands(choice.k());
      for (int i = 0; i < operands.size(); i++) {
        if (mustStage(operands.get(i), variant, kind, false, choice.differs().get(i))) {
          sum += costs.copyMicros(operands.get(i).value().tensor().bytes());
        }
      }
      for (var slot : graph.constraints().results(choice.k())) {
        if (mustStage(slot, variant, kind, true, false)) {
          sum += costs.copyMicros(slot.value().tensor().bytes());
        }
      }
      worst = Math.max(worst, sum);
    }
    return worst;
  }

  /** {@return whether a copy must connect a tensor to the collective} */
  public static boolean mustStage(
      OperandConstraint slot, Variant variant, Kind kind, boolean result, boolean differs) {
    var spec = VariantSpec.of(kind, variant);
    // Kernels find a peer's rows where the rank has its own.
    boolean apart = slot.rows().filter(rows -> differs || !spec.reads(rows)).isPresent();
    return slot.always() || apart || (spec.needsSymmetric(result) && (!slot.free() || differs));
  }

  /** For each operand, whether the ranks' graphs place it in different ways. */
  private ImmutableList<Boolean> differences(int k) {
    var first = graphs.getFirst().constraints().operands(k);
    var differs = ImmutableList.<Boolean>builder();
    for (int i = 0; i < first.size(); i++) {
      int index = i;
      differs.add(
          graphs.stream()
              .anyMatch(
                  g -> !g.constraints().operands(k).get(index).isPlacedLike(first.get(index))));
    }
    return differs.build();
  }

  private Optional<Verdict> forced(int k, Collective collective, List<Verdict> candidates) {
    var wanted = forcedVariants.of(k);
    if (wanted.isPresent()) {
      return NamedVariants.forced(collective, candidates, wanted.get());
    }
    return options.freeVariants()
        ? Optional.empty()
        : collective
            .algorithm()
            .flatMap(name -> NamedVariants.ofGraph(collective, candidates, name));
  }

  private static CompileException nothingEligible(Collective collective, List<Verdict> candidates) {
    var reasons =
        candidates.stream()
            .map(v -> v.variant().text() + ": " + v.detail())
            .collect(ImmutableList.toImmutableList());
    return new CompileException(
        new Diagnostic(
            Diagnostic.Severity.ERROR,
            DiagnosticCode.UNSUPPORTED,
            collective.op().span(),
            "no variant can run '%s'".formatted(collective.name()),
            "choose another backend, target, group or reduction",
            reasons));
  }
}
