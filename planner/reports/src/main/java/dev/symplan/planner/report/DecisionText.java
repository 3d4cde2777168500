package dev.symplan.planner.report;

import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.plan.ArgDecision;
import java.util.Optional;

/** A decision about one tensor of a collective, as a sentence. */
public final class DecisionText {
  private DecisionText() {}

  /** {@return for example {@code zero-copy: aten::mm writes it there (mlp.graph:9)}} */
  public static String of(Graph graph, ArgDecision decision) {
    return of(
        decision,
        graph.ops().stream()
            .filter(op -> op.results().stream().anyMatch(v -> v.name().equals(decision.value())))
            .findFirst());
  }

  /**
   * @param producer the op that gives the tensor
   */
  static String of(ArgDecision decision, Optional<Op> producer) {
    var what =
        switch (decision.reason()) {
          case PRODUCER_WRITES -> decision.cause() + " writes it there" + location(producer);
          case PLANNED_INPUT -> "the caller fills " + decision.cause() + " in the arena";
          case COLLECTIVE_RESULT -> decision.cause() + " leaves it there";
          case RESULT_WRITES -> "the collective writes it there";
          case IN_PLACE -> "it reuses the memory of " + decision.cause();
          case WRITES_ROWS ->
              "the collective writes its rows where " + decision.cause() + " joins them";
          case EXTERNAL_INPUT -> decision.cause() + " is the caller's memory";
          case EXTERNAL_OUTPUT -> decision.cause() + " goes to the caller's memory";
          case NOT_CONTIGUOUS -> "its elements are not row-major";
          case NOT_ALIGNED -> "it does not begin at a multiple of 16 bytes";
          case MAY_HAVE_MOVED -> "an unknown op may have moved " + decision.cause();
          case RANKS_DIFFER -> "the ranks' graphs place it differently";
          case READS_ROWS -> "the variant reads its rows where " + decision.cause() + " has them";
          case VARIANT_READS_ANYWHERE -> "the variant accepts it anywhere";
        };
    return decision.realization().text() + ": " + what;
  }

  private static String location(Optional<Op> producer) {
    return producer
        .filter(op -> op.span().line() > 0)
        .map(op -> " (" + op.span().shortForm() + ")")
        .orElse("");
  }
}
