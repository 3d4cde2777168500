package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.order.Recomputation;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import java.util.ArrayList;
import java.util.List;

/**
 * Computes tensors again until the plan takes no more memory than the caller allows. {@link
 * Recomputation} works on a prediction; what counts is what the arenas of a draft really take.
 */
final class FitMemory extends GraphPass {
  /** The tensors that are computed again. */
  static final Fact<ImmutableList<Rewrite>> RECOMPUTED = Fact.lasting("recomputed");

  /** The number of corrections of the prediction. */
  private static final int MAX_DRAFTS = 12;

  private final ImmutableList<GraphPass> draft;
  private final AllocateMemory allocate = new AllocateMemory();

  FitMemory(ImmutableList<GraphPass> draft) {
    super("recompute", facts(), facts(RECOMPUTED));
    this.draft = draft;
  }

  /** {@return the bytes of both arenas, inputs and outputs, on the rank that needs most} */
  static long needed(GraphState placed) {
    return placed.get(AllocateMemory.PLACED).stream()
        .mapToLong(rank -> needed(placed, rank))
        .max()
        .orElse(0);
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

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var limit = context.options().memoryLimit();
    return limit.isEmpty()
        ? state.with(RECOMPUTED, ImmutableList.of())
        : fit(state, limit.getAsLong(), context);
  }

  private GraphState fit(GraphState state, long limit, PassContext context) {
    var near = lower(state, limit, limit, context);
    if (needed(near) <= limit) {
      return near;
    }
    // Other tensors may go if all that can go do.
    var lowest = lower(state, limit, 0, context);
    if (needed(lowest) > limit) {
      throw tooLarge(lowest, limit);
    }
    return lowest;
  }

  /**
   * {@return the first draft within the limit, or one as low as it gets}
   *
   * @param aim what each draft tries to reach
   */
  private GraphState lower(GraphState state, long limit, long aim, PassContext context) {
    var now = place(state, context);
    var lowest = now;
    var made = new ArrayList<Rewrite>();
    for (int i = 0; i < MAX_DRAFTS && needed(lowest) > limit; i++) {
      var graphs = ImmutableList.<Graph>builder();
      boolean changed = false;
      for (int c = 0; c < now.classes().size(); c++) {
        var own = now.analyses().get(c);
        long over = needed(now, now.get(AllocateMemory.PLACED).get(c)) - aim;
        var lowered =
            Recomputation.lower(own, context.costs(), Recomputation.peak(own) - Math.max(0, over));
        graphs.add(lowered.graph());
        changed |= lowered.graph() != own.graph();
        lowered.made().forEach(again -> made.add(rewrite(again)));
      }
      if (!changed) {
        break;
      }
      now =
          place(now.withGraphs(graphs.build()), context)
              .with(RECOMPUTED, ImmutableList.copyOf(made));
      lowest = needed(now) < needed(lowest) ? now : lowest;
    }
    return lowest.facts().find(RECOMPUTED).isPresent()
        ? lowest
        : lowest.with(RECOMPUTED, ImmutableList.of());
  }

  private GraphState place(GraphState state, PassContext context) {
    return Pipeline.run(allocate, Pipeline.runAll(draft, state, context), context);
  }

  private static Rewrite rewrite(Recomputation.Made again) {
    return new Rewrite(
        Rewrite.Action.RECOMPUTED,
        ImmutableList.of(
            new Rewrite.Member(
                again.value().name(), again.value().span().toString(), again.bytes())),
        again.ops(),
        Rewrite.Reason.MEMORY_LIMIT,
        "%s before %s".formatted(Units.count(again.ops(), "op"), again.reader()),
        0,
        again.micros());
  }

  private static CompileException tooLarge(GraphState lowest, long limit) {
    long outside =
        lowest.get(AllocateMemory.PLACED).stream().mapToLong(FitMemory::outside).max().orElse(0);
    return new CompileException(
        List.of(
            Diagnostic.error(
                DiagnosticCode.BAD_OPTION,
                lowest.graphs().getFirst().span(),
                "the lowest plan that was found takes %s of a rank's memory, and the limit is %s"
                    .formatted(Units.bytes(needed(lowest)), Units.bytes(limit)),
                outside == 0
                    ? "allow at least %s bytes".formatted(needed(lowest))
                    : "allow at least %s bytes; inputs and outputs of the caller are %s of it, and"
                            .formatted(needed(lowest), Units.bytes(outside))
                        + " --donate lets other tensors reuse an input's memory")));
  }
}
