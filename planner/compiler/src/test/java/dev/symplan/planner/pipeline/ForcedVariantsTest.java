package dev.symplan.planner.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite.Action;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The caller forces variants by the names that a plan has, those of pieces and of all ranks. */
class ForcedVariantsTest {
  /** Its product can be split in two. */
  private static final String SPLIT =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph g(x: bf16[2048, 7168], w: bf16[7168, 4096]) {
        y = aten::mm(x, w)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        return r
      }
      """;

  /** The ranks name their collectives differently; {@code b} is one name of both. */
  private static final String RANKS =
      """
      graph version 1

      group tp = [0, 1]

      graph g(x: f32[64, 64]) ranks [0] {
        a = _c10d_functional::all_reduce(x, "sum", "tp")
        y = aten::relu(a)
        b = _c10d_functional::all_reduce(y, "sum", "tp")
        return b
      }

      graph g(x: f32[64, 64]) ranks [1] {
        b = _c10d_functional::all_reduce(x, "sum", "tp")
        y = aten::relu(b)
        c = _c10d_functional::all_reduce(y, "sum", "tp")
        return c
      }
      """;

  private static Plan compile(String text, Mode chunk, ImmutableMap<String, Variant> forced) {
    return Compiler.forTarget(Target.H200_X4)
        .with(
            CompileOptions.DEFAULT
                .withVariants(forced)
                .withRewrites(RewriteOptions.OFF.withChunk(chunk)))
        .compile(GraphParser.parse(new SourceFile("g.graph", text)));
  }

  private static ImmutableList<CollectivePlan> collectives(Plan plan, int rank) {
    return ImmutableList.copyOf(plan.rankPlans().get(rank).collectives());
  }

  private static List<Variant> variants(ImmutableMap<String, Variant> forced) {
    return collectives(compile(RANKS, Mode.OFF, forced), 1).stream()
        .map(CollectivePlan::variant)
        .toList();
  }

  @Test
  void takesTheNamesOfPieces() {
    var usual = compile(SPLIT, Mode.ON, ImmutableMap.of());
    assertThat(usual.rewrites()).extracting(r -> r.action()).containsExactly(Action.CHUNKED);
    assertThat(collectives(usual, 0))
        .hasSize(2)
        .extracting(CollectivePlan::variant)
        .doesNotContain(Variant.NCCL);
    var plan =
        compile(SPLIT, Mode.ON, ImmutableMap.of("r_0", Variant.NCCL, "r_1", Variant.ONE_SHOT));
    assertThat(collectives(plan, 0))
        .extracting(CollectivePlan::variant)
        .containsExactly(Variant.NCCL, Variant.ONE_SHOT);
    var whole = compile(SPLIT, Mode.AUTO, ImmutableMap.of("r", Variant.NCCL));
    assertThat(collectives(whole, 0))
        .extracting(CollectivePlan::variant)
        .containsExactly(Variant.NCCL);
  }

  @Test
  void saysWhyThereAreNoPieces() {
    var small = SPLIT.replace("2048", "256");
    assertThatThrownBy(() -> compile(small, Mode.AUTO, ImmutableMap.of("r_0", Variant.NCCL)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("no collective has the name or kind 'r_0'")
        .hasMessageContaining("'r' was left in one piece: ")
        .hasMessageContaining("collectives: r");
    assertThatThrownBy(() -> compile(SPLIT, Mode.ON, ImmutableMap.of("r_8", Variant.NCCL)))
        .hasMessageContaining("no collective has the name or kind 'r_8'")
        .hasMessageContaining("collectives: r_0, r_1");
  }

  @Test
  void takesTheNamesOfAllRanks() {
    assertThat(variants(ImmutableMap.of("c", Variant.NCCL, "a", Variant.TWO_SHOT)))
        .containsExactly(Variant.TWO_SHOT, Variant.NCCL);
    assertThat(variants(ImmutableMap.of("b", Variant.NCCL, "all_reduce", Variant.TWO_SHOT)))
        .as("b is what the first rank calls so")
        .containsExactly(Variant.TWO_SHOT, Variant.NCCL);
    assertThat(variants(ImmutableMap.of("b", Variant.NCCL, "c", Variant.NCCL)).getLast())
        .isEqualTo(Variant.NCCL);
    assertThatThrownBy(() -> variants(ImmutableMap.of("b", Variant.NCCL, "c", Variant.TWO_SHOT)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'b' and 'c' are one collective, on different ranks");
  }
}
