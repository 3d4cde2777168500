package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.List;

/** Plans of graphs with one collective, which may take over the copies around it. */
final class FoldedPlans {
  static final String ALL = "[0, 1, 2, 3]";

  private FoldedPlans() {}

  /**
   * @param group the ranks of the group, which the graph calls {@code g4}
   */
  static Plan plan(String group, String graph, CompileOptions options) {
    var text = "graph version 1\ngroup g4 = " + group + "\n" + graph;
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("test.graph", text)));
  }

  static Plan plan(String graph, CompileOptions options) {
    return plan(ALL, graph, options);
  }

  static Rewrite only(Plan plan) {
    assertThat(plan.rewrites()).hasSize(1);
    return plan.rewrites().getFirst();
  }

  static List<String> ops(Plan plan) {
    return plan.forRank(0).graph().ops().stream().map(op -> op.def().name().toString()).toList();
  }

  /**
   * @param folded the collectives that would take over the copies
   */
  static void assertStays(Plan plan, Reason reason, String... folded) {
    assertThat(only(plan).action()).isEqualTo(Action.UNFOLDED);
    assertThat(only(plan).reason()).isEqualTo(reason);
    assertThat(ops(plan)).contains("aten::cat").doesNotContain(folded);
  }
}
