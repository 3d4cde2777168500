package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import org.junit.jupiter.api.Test;

/** Numbers of ranks, in graphs and in plan files, are as many as the ranks. */
class RankNumbersPlanTest {
  private static final String GRAPH =
      """
      graph version 1
      group world = [0, 1]
      graph a(x: i32[4]) {
        n: i32[] = symplan::rank_number([7, -1], dtype=torch.int32)
        y = aten::add.Tensor(x, n)
        s = _c10d_functional::all_reduce(y, "sum", "world")
        w = _c10d_functional::wait_tensor(s)
        return w
      }
      """;

  private static Plan plan(String graph) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT)
        .compile(GraphParser.parse(new SourceFile("t.graph", graph)));
  }

  @Test
  void aGraphNamesTheOp() {
    assertThatThrownBy(() -> plan(GRAPH.replace("[7, -1]", "[7, -1, 3]")))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("t.graph:4")
        .hasMessageContaining("'n' has 3 numbers, but there are 2 ranks");
  }

  @Test
  void aPlanFileIsRefused() {
    var json = PlanFile.toJson(plan(GRAPH));
    assertThat(PlanFile.toJson(PlanFile.read(new SourceFile("p.json", json)))).isEqualTo(json);

    assertThatThrownBy(
            () -> PlanFile.read(new SourceFile("p.json", json.replace("[7, -1]", "[7]"))))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("n has 1 number, but there are 2 ranks");
  }
}
