package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.order.PeakReduction;
import dev.symplan.planner.pass.order.PeakReduction.Made;
import dev.symplan.planner.pass.order.PeakReduction.Offloaded;
import dev.symplan.planner.pass.order.PeakReduction.Recomputed;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.rewrite.LiftElementwise;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;

/**
 * Moves tensors to the host's memory, or computes them again, until the plan takes no more memory
 * than the caller allows. {@link PeakReduction} works on a prediction; what counts is what the
 * arenas of a draft really take.
 */
final class FitMemory extends GraphPass {
  /** The tensors that give up their memory. */
  static final Fact<ImmutableList<Rewrite>> GIVEN_UP = Fact.lasting("given-up");

  /** The least memory that would do, where the limit is short. */
  static final Fact<OptionalLong> LEAST = Fact.lasting("least-memory");

  /** The number of corrections of the prediction. */
  private static final int MAX_DRAFTS = 12;

  private final ImmutableList<GraphPass> draft;
  private final AllocateMemory allocate = new AllocateMemory();

  FitMemory(ImmutableList<GraphPass> draft) {
    super("recompute", facts(), facts(GIVEN_UP, LEAST));
    this.draft = draft;
  }

  /** {@return the bytes of both arenas, inputs and outputs, on the rank that needs most} */
  static long needed(GraphState placed) {
    return largest(placed, rank -> needed(placed, rank));
  }

  private static long needed(GraphState placed, RankPlan rank) {
    return placed.get(AllocateMemory.SYMMETRIC_ARENA).bytes()
        + rank.local().bytes()
        + outside(rank);
  }

  private static long outside(RankPlan rank) {
    return rank.buffers().stream()
        .filter(buffer -> buffer.arena().isExternal())
        .mapToLong(Buffer::bytes)
        .sum();
  }

  /** {@return the bytes of inputs that stay where the caller wants them} */
  private static long placedInputs(Analyses graph) {
    return graph.graph().inputs().stream()
        .filter(
            input ->
                input.isTensor()
                    && switch (graph.spaces().input(input)) {
                      case SYMMETRIC, EXTERNAL -> true;
                      case ANY, LOCAL, DONATED, HOST -> false;
                    })
        .mapToLong(input -> input.tensor().storageBytes())
        .sum();
  }

  /**
   * Checks the limit once more, as the symmetric arena is as large as any stage needs it.
   *
   * @throws CompileException when a rank needs more
   */
  static void check(Plan plan, PassContext context) {
    long limit = context.options().memoryLimit().orElse(Long.MAX_VALUE);
    for (var rank : plan.rankPlans()) {
      long needed = plan.symmetric().bytes() + rank.local().bytes() + outside(rank);
      if (needed > limit) {
        throw new CompileException(
            List.of(
                Diagnostic.error(
                    DiagnosticCode.BAD_OPTION,
                    rank.graph().span(),
                    "with the symmetric arena of the stage that needs most, a rank needs %s, and the limit is %s"
                        .formatted(Units.bytes(needed), Units.bytes(limit)),
                    "allow at least %s bytes".formatted(needed))));
      }
    }
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var limit = context.options().memoryLimit();
    return limit.isEmpty()
        ? state.with(GIVEN_UP, ImmutableList.of()).with(LEAST, OptionalLong.empty())
        : fit(state, limit.getAsLong(), context);
  }

  private GraphState fit(GraphState state, long limit, PassContext context) {
    var first = place(state, limit, context);
    var lifted = LiftElementwise.lifted(state, context);
    // Ops that are lifted save time, but keep tensors that could be computed again.
    boolean same = RewriteSearch.isUnchanged(state.graphs(), lifted.graphs());
    for (var free : same ? List.of(first) : List.of(place(lifted, limit, context), first)) {
      if (needed(free) <= limit) {
        return free.with(GIVEN_UP, ImmutableList.of()).with(LEAST, OptionalLong.empty());
      }
    }
    var near = lower(first, limit, limit, true, context);
    // The memory that the plan takes if all that can go does.
    var lowest = limit == 0 ? near : lower(first, 0, 0, true, context);
    if (needed(lowest) > limit) {
      throw tooLarge(lowest, limit);
    }
    // Drafts need more than predicted, and their corrections are each made by themselves.
    var fits =
        Stream.of(near, lower(first, limit, limit, false, context))
            .filter(draft -> needed(draft) <= limit)
            .min(Comparator.comparingDouble(FitMemory::micros))
            .orElseGet(() -> lower(first, limit, 0, true, context));
    var chosen = needed(fits) <= limit ? fits : lowest;
    return chosen.with(LEAST, OptionalLong.of(Math.min(needed(chosen), needed(lowest))));
  }

  /** {@return the predicted time that what was given up adds} */
  private static double micros(GraphState draft) {
    return draft.get(GIVEN_UP).stream().mapToDouble(Rewrite::afterMicros).sum();
  }

  /**
   * {@return the first draft within the limit, or one as low as it gets}
   *
   * @param first the draft in which nothing is given up
   * @param aim the bytes that each draft tries to reach
   * @param moves whether tensors may move to the host's memory
   */
  private GraphState lower(
      GraphState first, long limit, long aim, boolean moves, PassContext context) {
    var now = first;
    var lowest = first;
    var made = new ArrayList<List<Made>>();
    now.classes().forEach(_ -> made.add(List.of()));
    for (int i = 0; i < MAX_DRAFTS && needed(lowest) > limit; i++) {
      var graphs = ImmutableList.<Graph>builder();
      boolean changed = false;
      var gathers = gathers(now, context);
      for (int c = 0; c < now.classes().size(); c++) {
        var own = now.analyses().get(c);
        long over = needed(now, now.get(AllocateMemory.PLACED).get(c)) - aim;
        var lowered =
            PeakReduction.lower(
                own,
                context.costs(),
                gathers,
                moves,
                made.get(c),
                PeakReduction.peak(own) - Math.max(0, over));
        graphs.add(lowered.graph());
        changed |= !lowered.graph().ops().equals(own.graph().ops());
        made.set(c, lowered.made());
      }
      if (!changed) {
        break;
      }
      now =
          place(now.withGraphs(graphs.build()), limit, context)
              .with(
                  GIVEN_UP,
                  made.stream()
                      .flatMap(List::stream)
                      .map(FitMemory::rewrite)
                      .collect(ImmutableList.toImmutableList()));
      lowest = needed(now) < needed(lowest) ? now : lowest;
    }
    return lowest.facts().find(GIVEN_UP).isPresent()
        ? lowest
        : lowest.with(GIVEN_UP, ImmutableList.of());
  }

  /** The facts that make two gathers cost the same. */
  private record Gather(String group, TensorType shard) {}

  /** Gathers of one tensor, by the variants of a draft; compute may hide them, or not. */
  private static PeakReduction.Gathers gathers(GraphState placed, PassContext context) {
    if (placed.classes().size() > 1) {
      return PeakReduction.Gathers.NEVER;
    }
    var micros = new HashMap<Gather, Double>();
    var collectives = placed.analyses().getFirst().collectives();
    for (int k = 0; k < collectives.size(); k++) {
      var gather = collectives.get(k);
      var variant = placed.get(SelectVariants.SELECTIONS).get(k).variant();
      if (isGather(gather) && !context.isBetweenStages(gather.group())) {
        for (var operand : gather.operands()) {
          var shard = operand.tensor();
          micros.put(
              new Gather(gather.group(), shard),
              context
                  .costs()
                  .transferMicros(
                      gather.kind(), variant, shard.bytes(), 1, context.reach(gather.group())));
        }
      }
    }
    return (op, k) ->
        Collective.of(op, 0)
            .filter(FitMemory::isGather)
            .map(gather -> new Gather(gather.group(), gather.operands().get(k).tensor()))
            .flatMap(gather -> Optional.ofNullable(micros.get(gather)))
            .map(OptionalDouble::of)
            .orElseGet(OptionalDouble::empty);
  }

  /** Each result is the whole of one operand. */
  private static boolean isGather(Collective collective) {
    return collective.kind() == Kind.ALL_GATHER
        && collective.results().size() == collective.operands().size()
        && collective.op().results().size() == collective.results().size()
        && collective.op().operands().equals(collective.operands());
  }

  /** Without overlap if that is lower, where the limit is exceeded: gathers begin early. */
  private GraphState place(GraphState state, long limit, PassContext context) {
    var made = Pipeline.run(allocate, Pipeline.runAll(draft, state, context), context);
    if (needed(made) <= limit) {
      return made;
    }
    var alone = Pipeline.run(allocate, new OverlapDrafts(draft, context).alone(made), context);
    return needed(alone) < needed(made) ? alone : made;
  }

  private static Rewrite rewrite(Made made) {
    return new Rewrite(
        switch (made) {
          case Recomputed _ -> Rewrite.Action.RECOMPUTED;
          case Offloaded _ -> Rewrite.Action.OFFLOADED;
        },
        ImmutableList.of(
            new Rewrite.Member(made.value().name(), made.value().span().toString(), made.bytes())),
        switch (made) {
          case Recomputed again -> again.ops();
          case Offloaded _ -> 2;
        },
        Rewrite.Reason.MEMORY_LIMIT,
        switch (made) {
          case Recomputed again ->
              "%s%s before %s"
                  .formatted(
                      Units.count(again.ops(), "op"),
                      again.gathers() == 0
                          ? ""
                          : ", with %s,".formatted(Units.count(again.gathers(), "gather")),
                      again.reader());
          case Offloaded moved -> visits(moved);
        },
        0,
        made.micros());
  }

  private static String visits(Offloaded moved) {
    if (moved.readers().isEmpty()) {
      return "lives in the host's memory, and nothing uses it";
    }
    return "%s before %s, %s on the link"
        .formatted(
            moved.input()
                ? "lives in the host's memory, and is copied in"
                : "moves to the host's memory, and is back",
            String.join(" and ", moved.readers()),
            Units.micros(moved.linkMicros()));
  }

  private static CompileException tooLarge(GraphState lowest, long limit) {
    var hints = new ArrayList<String>();
    hints.add("allow at least %s bytes".formatted(needed(lowest)));
    long outside = largest(lowest, FitMemory::outside);
    if (outside > 0) {
      hints.add(
          "inputs and outputs of the caller are %s of it, and --donate lets other tensors reuse an input's memory"
              .formatted(Units.bytes(outside)));
    }
    long placed = lowest.analyses().stream().mapToLong(FitMemory::placedInputs).max().orElse(0);
    if (placed > 0) {
      hints.add(
          "inputs that the caller places are %s of it, and others may live in the host's memory"
              .formatted(Units.bytes(placed)));
    }
    return new CompileException(
        List.of(
            Diagnostic.error(
                DiagnosticCode.BAD_OPTION,
                lowest.graphs().getFirst().span(),
                "the lowest plan that was found takes %s of a rank's memory, and the limit is %s"
                    .formatted(Units.bytes(needed(lowest)), Units.bytes(limit)),
                String.join("; ", hints))));
  }

  private static long largest(GraphState placed, ToLongFunction<RankPlan> bytes) {
    return placed.get(AllocateMemory.PLACED).stream().mapToLong(bytes).max().orElse(0);
  }
}
