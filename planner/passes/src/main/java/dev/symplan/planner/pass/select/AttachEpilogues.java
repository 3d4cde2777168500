package dev.symplan.planner.pass.select;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.EpilogueOps;
import dev.symplan.planner.plan.Epilogue;
import java.util.Optional;

/**
 * Decides which collectives have epilogues: those selected, unless a copy has come between a
 * collective and the ops behind it.
 */
public final class AttachEpilogues extends GraphPass {
  /** By collective; empty for kinds that cannot have one. */
  public static final Fact<ImmutableList<Optional<Epilogue>>> EPILOGUES =
      Fact.ofGraphs("epilogues");

  public AttachEpilogues() {
    super("epilogues", facts(RealizeOperands.REALIZED), facts(EPILOGUES));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var epilogues = ImmutableList.<Optional<Epilogue>>builder();
    var collectives = state.get(RealizeOperands.REALIZED).getFirst().collectives();
    for (int k = 0; k < collectives.size(); k++) {
      epilogues.add(
          EpilogueOps.mayFollow(collectives.get(k))
              ? Optional.of(epilogue(state, k, context))
              : Optional.empty());
    }
    return state.with(EPILOGUES, epilogues.build());
  }

  private static Epilogue epilogue(GraphState state, int k, PassContext context) {
    var reason = state.get(SelectVariants.SELECTIONS).get(k).epilogue();
    if (reason != Epilogue.Reason.FUSED) {
      return Epilogue.none(reason);
    }
    var graphs = state.get(RealizeOperands.REALIZED);
    var ops =
        graphs.stream()
            .flatMap(graph -> graph.analyses().epilogue(k).stream())
            .collect(toImmutableList());
    var spec = graphs.getFirst().spec(k);
    if (ops.size() < graphs.size()) {
      return Epilogue.none(Epilogue.Reason.ROWS);
    }
    return new Epilogue(
        reason,
        ops.stream().anyMatch(own -> own.stored(spec)),
        ops.stream()
            .mapToDouble(own -> own.savedMicros(context.costs(), spec))
            .min()
            .orElseThrow());
  }
}
