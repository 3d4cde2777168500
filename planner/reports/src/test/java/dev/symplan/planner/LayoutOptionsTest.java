package dev.symplan.planner;

import static dev.symplan.planner.FoldedPlans.assertStays;
import static dev.symplan.planner.FoldedPlans.only;
import static dev.symplan.planner.FoldedPlans.ops;
import static dev.symplan.planner.FoldedPlans.plan;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.List;
import org.junit.jupiter.api.Test;

class LayoutOptionsTest {
  private static final CompileOptions USUAL = CompileOptions.DEFAULT;
  private static final String GATHER = "symplan::all_gather_dim";

  private static final String COLUMNS =
      """
      graph columns(x: bf16[512, 1024], w: bf16[1024, 512]) {
        y = aten::mm(x, w)
        r = _c10d_functional::all_gather_into_tensor(y, 4, "g4")
        a, b, c, d = aten::split.Tensor(r, 512)
        o = aten::cat([a, b, c, d], 1)
        return o
      }
      """;

  @Test
  void theCopyBehindAGatherIsGoneAndHalfOfTheMemory() {
    var plan = plan(COLUMNS, USUAL);
    assertThat(ops(plan)).containsExactly("aten::mm", "symplan::all_gather_dim");
    assertThat(plan.forRank(0).graph().ops().getLast().result().tensor().sizes())
        .isEqualTo(ImmutableLongArray.of(512, 2048));
    assertThat(only(plan).action()).isEqualTo(Action.FOLDED);
    assertThat(only(plan).reason()).isEqualTo(Reason.FASTER);
    var copied = plan(COLUMNS, USUAL.withRewrites(RewriteOptions.AUTO.withLayouts(Mode.OFF)));
    assertThat(ops(copied)).contains("aten::cat");
    assertThat(copied.rewrites()).isEmpty();
    long whole = 2L * 512 * 2048;
    assertThat(plan.total().bytes()).isEqualTo(whole);
    assertThat(copied.total().bytes()).isEqualTo(2 * whole);
  }

  @Test
  void plansSayWhatWasFoldedInFileDumpAndExplanation() {
    var plan = plan(COLUMNS, USUAL);
    var json = PlanFile.toJson(plan);
    var read = PlanFile.read(new SourceFile("plan.json", json));
    assertThat(read.rewrites()).isEqualTo(plan.rewrites());
    assertThat(PlanFile.toJson(read)).isEqualTo(json);
    var line =
        "r (512.0 KiB, test.graph:5:7) moves its slices to where they belong, without 1 copy";
    assertThat(TextRenderer.render(PlanReport.of(plan, List.of(View.COLLECTIVES))))
        .contains("\n" + line, "o all_gather along dim 1", "cannot: each rank's slice consists");
    assertThat(PlanExplainer.explain(plan, "r").map(TextRenderer::row).orElseThrow())
        .contains(line);
  }

  @Test
  void copiesStayForVariantsThatMoveRunsOfBytes() {
    assertStays(
        plan(COLUMNS, USUAL.withVariants(ImmutableMap.of("all_gather", Variant.NCCL))),
        Reason.FORCED_VARIANT,
        GATHER);
    assertStays(
        plan(COLUMNS, USUAL.withVariants(ImmutableMap.of("r", Variant.PUSH))),
        Reason.FORCED_VARIANT,
        GATHER);
    assertThat(ops(plan(COLUMNS, USUAL.withVariants(ImmutableMap.of("all_gather", Variant.PUSH)))))
        .contains("symplan::all_gather_dim");
  }

  @Test
  void copiesOfShortRowsStayUnlessTheyAreUnwanted() {
    for (var columns : List.of("[512, 60]", "[512, 65]")) {
      var text =
          """
          graph columns(x: bf16%s) {
            r = _c10d_functional::all_gather_into_tensor(x, 4, "g4")
            a, b, c, d = aten::split.Tensor(r, 512)
            o = aten::cat([a, b, c, d], 1)
            return o
          }
          """
              .formatted(columns);
      assertStays(plan(text, USUAL), Reason.NO_GAIN, GATHER);
      var wanted = plan(text, USUAL.withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON)));
      assertThat(ops(wanted)).containsExactly("symplan::all_gather_dim");
    }
  }

  @Test
  void copiesStayBetweenHosts() {
    var flat = USUAL.withRewrites(RewriteOptions.AUTO.withHierarchical(Mode.OFF));
    assertStays(plan("[0, 4, 1, 5], [2, 6, 3, 7]", COLUMNS, flat), Reason.LAYOUT, GATHER);
  }

  /** With as many rows as ranks, the copy after the gather is the one before the scatter. */
  @Test
  void aCopyBetweenTwoCollectivesIsFoldedOnce() {
    var plan =
        plan(
            """
            graph both(x: bf16[4, 512]) {
              r = _c10d_functional::all_gather_into_tensor(x, 4, "g4")
              a, b, c, d = aten::split.Tensor(r, 4)
              o = aten::cat([a, b, c, d], 1)
              v = aten::view(o, [16, 512])
              s = _c10d_functional::reduce_scatter_tensor(v, "sum", 4, "g4")
              return s
            }
            """,
            USUAL);
    assertThat(only(plan).action()).isEqualTo(Action.FOLDED);
    assertThat(ops(plan))
        .containsExactly(
            "symplan::all_gather_dim", "aten::view", "_c10d_functional::reduce_scatter_tensor");
  }

  /** What the conversion makes has no gaps between rows, and so other strides. */
  @Test
  void aConversionOfRowsThatAreApartIsLeftOut() {
    var text =
        """
        graph apart(x: bf16[2, 48]) {
          s = aten::slice.Tensor(x, 1, 16, 36)
          v = aten::view(s, [2, 4, 5])
          p = aten::permute(v, [1, 0, 2])
          w = aten::_to_copy(p, dtype=torch.float32)
          r = _c10d_functional::reduce_scatter_tensor(w, "sum", 4, "g4")
          return r
        }
        """;
    var options = USUAL.withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON));
    assertThat(ops(plan(text, options)))
        .contains("symplan::reduce_scatter_dim")
        .doesNotContain("aten::_to_copy");
  }

  /** Ranks write into each other's rows, so all of them have to have the same. */
  @Test
  void copiesStayWhereRanksWantOtherRows() {
    var text =
        COLUMNS.replace(") {", ") ranks [0, 1] {")
            + COLUMNS
                .replace(") {", ") ranks [2, 3] {")
                .replace("aten::cat([a, b, c, d], 1)", "aten::cat([a, b, c, d], 0)");
    var plan = plan(text, USUAL);
    assertThat(plan.rewrites()).isEmpty();
    assertThat(ops(plan)).contains("aten::cat");
  }

  @Test
  void digestsTellRowsFromRuns() {
    var text =
        """
        graph gathered(x: bf16[512, 512]) {
          r = symplan::all_gather_dim(x, %s, 4, "g4")
          return r
        }
        """;
    var options = USUAL.withVariants(ImmutableMap.of("all_gather", Variant.PUSH));
    assertThat(plan(text.formatted(0), options).digest())
        .isNotEqualTo(plan(text.formatted(1), options).digest());
  }
}
