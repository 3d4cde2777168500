package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.plan.Rewrite;
import java.util.List;
import java.util.Optional;

/** Makes other collectives of some, on all ranks alike. */
public interface Rewriter {

  /**
   * The graphs as a rewrite would make them.
   *
   * @param graphs by rank class; the graphs as they are if nothing is to change
   * @param rewrites the changes, and the reasons why there are not more
   */
  record Proposal(ImmutableList<Graph> graphs, ImmutableList<Rewrite> rewrites) {}

  /** {@return whether the user wants it done always, never, or where it helps} */
  Mode mode(RewriteOptions options);

  /**
   * {@return the graphs that it proposes}
   *
   * @param state for which variants have been selected
   * @param context whose mode is not {@link Mode#OFF}
   */
  Proposal propose(GraphState state, PassContext context);

  /**
   * {@return the entry of a decision for a collective}
   *
   * @param classes the graphs of the rank classes
   * @param k its position among the collectives of each graph
   */
  static Rewrite.Member member(List<Analyses> classes, int k) {
    var collective = classes.getFirst().collectives().get(k);
    long bytes = classes.stream().mapToLong(g -> g.collectives().get(k).bytes()).max().orElse(0);
    return new Rewrite.Member(collective.name(), collective.op().span().toString(), bytes);
  }

  /** {@return why no rewrite may change the {@code k}-th collective; empty if one may} */
  static Optional<Rewrite.Reason> whyFixed(List<Analyses> classes, int k, PassContext context) {
    return classes.stream()
        .flatMap(graph -> context.whyFixed(graph.collectives().get(k)).stream())
        .findFirst();
  }

  /** {@return the words for such a reason, for people} */
  static String detail(Rewrite.Reason fixed) {
    return fixed == Rewrite.Reason.OTHER_STAGE
        ? "ranks of another stage take part"
        : "its variant is forced";
  }
}
