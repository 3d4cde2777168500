package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class RewriteOptionsTest {
  private static final RewriteOptions BUCKET =
      new RewriteOptions(Mode.AUTO, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF);
  private static final RewriteOptions CHUNK =
      new RewriteOptions(Mode.OFF, Mode.AUTO, Mode.OFF, Mode.OFF, Mode.OFF);

  private static final String TWO_SMALL =
      """
      graph small(x: f32[64, 64], y: f32[64, 64]) {
        a = aten::relu(x)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        b = aten::exp(y)
        s = _c10d_functional::all_reduce(b, "sum", "tp")
        rw = _c10d_functional::wait_tensor(r)
        sw = _c10d_functional::wait_tensor(s)
        o = aten::add.Tensor(rw, sw)
        return o
      }
      """;

  private static Plan plan(String text, RewriteOptions rewrites) {
    return plan(text, CompileOptions.DEFAULT.withRewrites(rewrites));
  }

  private static Plan plan(String text, CompileOptions options) {
    var source =
        new SourceFile(
            "test.graph",
            "graph version 1\ngroup tp = [0, 1, 2, 3]\ngroup pairs = [0, 1], [2, 3]\n" + text);
    return Compiler.forTarget(Target.H200_X4).with(options).compile(GraphParser.parse(source));
  }

  /** The collectives of rank 0, each as the names of its results. */
  private static List<String> collectives(Plan plan) {
    var rank = plan.forRank(0);
    var values = rank.graph().values();
    return rank.collectives().stream()
        .map(
            collective ->
                collective.results().stream()
                    .map(id -> values.get(id).name())
                    .collect(Collectors.joining("+")))
        .toList();
  }

  private static Rewrite only(Plan plan) {
    assertThat(plan.rewrites()).hasSize(1);
    return plan.rewrites().getFirst();
  }

  @Test
  void smallCollectivesOfOneGroupBecomeOne() {
    var plan = plan(TWO_SMALL, BUCKET);
    assertThat(collectives(plan)).containsExactly("r+s");
    var rewrite = only(plan);
    assertThat(rewrite.action()).isEqualTo(Action.MERGED);
    assertThat(rewrite.reason()).isEqualTo(Reason.FASTER);
    assertThat(rewrite.members())
        .containsExactly(
            new Rewrite.Member("r", "test.graph:6:7", 16384),
            new Rewrite.Member("s", "test.graph:8:7", 16384));
    assertThat(rewrite.afterMicros()).isLessThan(rewrite.beforeMicros());
    assertThat(collectives(plan(TWO_SMALL, RewriteOptions.OFF))).containsExactly("r", "s");
  }

  @Test
  void nothingIsPacked() {
    var rank = plan(TWO_SMALL, BUCKET).forRank(0);
    assertThat(rank.graph().ops()).noneMatch(op -> op.def().name().toString().contains("stage"));
    assertThat(rank.collectives().getFirst().args())
        .allMatch(arg -> arg.realization() != ArgDecision.Realization.STAGED);
  }

  @Test
  void plansSayWhatWasMergedInFileDumpAndExplanation() {
    var plan = plan(TWO_SMALL, BUCKET);
    var json = PlanFile.toJson(plan);
    var read = PlanFile.read(new SourceFile("plan.json", json));
    assertThat(read.rewrites()).isEqualTo(plan.rewrites());
    assertThat(PlanFile.toJson(read)).isEqualTo(json);
    var line =
        "merged r (16.0 KiB, test.graph:6:7), s (16.0 KiB, test.graph:8:7) at the position of s:";
    assertThat(TextRenderer.render(PlanReport.of(plan, List.of(View.COLLECTIVES))))
        .contains("\n" + line);
    assertThat(PlanExplainer.explain(plan, "s").map(TextRenderer::row).orElseThrow())
        .contains("  " + line);
  }

  @Test
  void whatIsNeededBetweenKeepsCollectivesApart() {
    var plan =
        plan(
            """
            graph chain(x: f32[64, 64]) {
              a = aten::relu(x)
              r = _c10d_functional::all_reduce(a, "sum", "tp")
              b = aten::exp(r)
              s = _c10d_functional::all_reduce(b, "sum", "tp")
              return s
            }
            """,
            new RewriteOptions(Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF));
    assertThat(collectives(plan)).containsExactly("r", "s");
    assertThat(only(plan).action()).isEqualTo(Action.APART);
    assertThat(only(plan).reason()).isEqualTo(Reason.NEEDED_EARLIER);
    assertThat(only(plan).detail()).isEqualTo("aten::exp (test.graph:7) comes between");
    assertThat(PlanExplainer.explain(plan, "s").map(TextRenderer::row).orElseThrow())
        .contains("not merged with r (16.0 KiB, test.graph:6:7): s (16.0 KiB, test.graph:8:7):");
  }

  @Test
  void aCollectiveOfAnothersResultComesAfterIt() {
    var plan =
        plan(
            """
            graph chain(x: f32[64, 64]) {
              a = aten::relu(x)
              r = _c10d_functional::all_reduce(a, "sum", "tp")
              w = _c10d_functional::wait_tensor(r)
              s = _c10d_functional::all_reduce(w, "sum", "tp")
              return s
            }
            """,
            new RewriteOptions(Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF));
    assertThat(collectives(plan)).containsExactly("r", "s");
    assertThat(only(plan).reason()).isEqualTo(Reason.DEPENDENT);
  }

  @Test
  void groupsReductionsAndTypesStayApart() {
    var plan =
        plan(
            """
            graph kinds(x: f32[64, 64], h: bf16[64, 64]) {
              a = aten::relu(x)
              b = aten::exp(x)
              c = aten::neg(x)
              d = aten::relu(h)
              r = _c10d_functional::all_reduce(a, "sum", "tp")
              s = _c10d_functional::all_reduce(b, "sum", "pairs")
              t = _c10d_functional::all_reduce(c, "max", "tp")
              u = _c10d_functional::all_reduce(d, "sum", "tp")
              return r, s, t, u
            }
            """,
            new RewriteOptions(Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF));
    assertThat(collectives(plan)).containsExactly("r", "s", "t", "u");
    assertThat(plan.rewrites())
        .allMatch(rewrite -> rewrite.reason() == Reason.OTHER_KIND)
        .extracting(Rewrite::detail)
        .containsExactly(
            "group 'pairs', not 'tp'", "group 'tp', not 'pairs'", "it reduces with sum, not max");
  }

  @Test
  void aVariantForcedByNameLeavesItsCollectiveAlone() {
    var options =
        CompileOptions.DEFAULT
            .withRewrites(new RewriteOptions(Mode.ON, Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF))
            .withVariants(ImmutableMap.of("s", Variant.NCCL));
    var plan = plan(TWO_SMALL, options);
    assertThat(collectives(plan)).containsExactly("r", "s");
    assertThat(only(plan).reason()).isEqualTo(Reason.FORCED_VARIANT);
  }

  @Test
  void gathersMoveToTheFirstThatIsNeeded() {
    var plan =
        plan(
            """
            graph fsdp(x: f32[64, 64], v: f32[16, 64], w: f32[16, 64]) {
              g = _c10d_functional::all_gather_into_tensor(v, 4, "tp")
              gw = _c10d_functional::wait_tensor(g)
              a = aten::mm(x, gw)
              wt = aten::view(w, [1024])
              h = _c10d_functional::all_gather_into_tensor(wt, 4, "tp")
              hw = _c10d_functional::wait_tensor(h)
              hv = aten::view(hw, [64, 64])
              b = aten::mm(a, hv)
              return b
            }
            """,
            BUCKET);
    assertThat(collectives(plan)).containsExactly("g+h");
    assertThat(only(plan).detail()).isEqualTo("at the position of g");
  }

  @Test
  void tensorsThatWouldLiveTooLongKeepCollectivesApart() {
    var plan = plan(LONG_LIVED, BUCKET);
    assertThat(collectives(plan)).containsExactly("g", "h");
    assertThat(only(plan).reason()).isEqualTo(Reason.MEMORY);
    assertThat(
            collectives(
                plan(
                    LONG_LIVED,
                    new RewriteOptions(Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF))))
        .containsExactly("g+h");
  }

  /** The second weight is gathered when the first is no longer needed. */
  private static final String LONG_LIVED =
      """
      graph fsdp(x: bf16[4, 2048], v: bf16[512, 2048], w: bf16[512, 2048]) {
        g = _c10d_functional::all_gather_into_tensor(v, 4, "tp")
        gw = _c10d_functional::wait_tensor(g)
        a = aten::mm(x, gw)
        h = _c10d_functional::all_gather_into_tensor(w, 4, "tp")
        hw = _c10d_functional::wait_tensor(h)
        b = aten::mm(a, hw)
        return b
      }
      """;

  @Test
  void ranksWithGraphsOfTheirOwnMergeAlike() {
    var plan =
        plan(
            """
            graph ranks(x: f32[64, 64]) ranks [0, 2] {
              a = aten::relu(x)
              r = _c10d_functional::all_reduce(a, "sum", "tp")
              b = aten::exp(x)
              s = _c10d_functional::all_reduce(b, "sum", "tp")
              c = aten::neg(x)
              t = _c10d_functional::all_reduce(c, "sum", "tp")
              o = aten::add.Tensor(r, s)
              p = aten::add.Tensor(o, t)
              return p
            }

            graph ranks(x: f32[64, 64]) ranks [1, 3] {
              a = aten::relu(x)
              r = _c10d_functional::all_reduce(a, "sum", "tp")
              b = aten::exp(x)
              s = _c10d_functional::all_reduce(b, "sum", "tp")
              o = aten::add.Tensor(r, s)
              c = aten::neg(o)
              t = _c10d_functional::all_reduce(c, "sum", "tp")
              p = aten::add.Tensor(o, t)
              return p
            }
            """,
            new RewriteOptions(Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF));
    // The third could join on ranks 0 and 2, but not on the others.
    for (int rank = 0; rank < 4; rank++) {
      assertThat(plan.forRank(rank).collectives()).hasSize(2);
    }
    assertThat(collectives(plan)).containsExactly("r+s", "t");
  }

  private static final String PRODUCT =
      """
      graph product(x: bf16[1, 8192, 8192], w: bf16[8192, 8192]) {
        xv = aten::view(x, [8192, 8192])
        y = aten::mm(xv, w)
        yv = aten::view(y, [1, 8192, 8192])
        r = _c10d_functional::all_reduce(yv, "sum", "tp")
        rw = _c10d_functional::wait_tensor(r)
        return rw
      }
      """;

  @Test
  void aLargeProductIsReducedInPieces() {
    var plan = plan(PRODUCT, new RewriteOptions(Mode.OFF, Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF));
    var rewrite = only(plan);
    assertThat(rewrite.action()).isEqualTo(Action.CHUNKED);
    assertThat(collectives(plan)).hasSize(rewrite.pieces()).startsWith("r_0", "r_1");
    var async = plan.forRank(0).collectives().stream().map(CollectivePlan::isAsync).toList();
    assertThat(async).startsWith(true).endsWith(false);
    assertThat(TextRenderer.render(PlanReport.of(plan, List.of(View.COLLECTIVES))))
        .contains("split r (128.0 MiB, test.graph:8:7) in ");
  }

  @Test
  void piecesAreWrittenWhereTheyAreJoined() {
    var whole = plan(PRODUCT, RewriteOptions.OFF);
    var split = plan(PRODUCT, RewriteOptions.OFF.withChunk(Mode.ON));
    assertThat(only(split).action()).isEqualTo(Action.CHUNKED);
    assertThat(split.total()).isEqualTo(whole.total());
  }

  /** On four H200s, 8 pieces took 4.5 % longer than the whole (docs/performance.md). */
  @Test
  void aLargeProductStaysWholeUnlessAsked() {
    var plan = plan(PRODUCT, CHUNK);
    assertThat(collectives(plan)).containsExactly("r");
    assertThat(only(plan).reason()).isEqualTo(Reason.NO_GAIN);
    assertThat(only(plan).afterMicros()).isGreaterThan(only(plan).beforeMicros());
  }

  @Test
  void aSmallProductStaysWhole() {
    var plan = plan(PRODUCT.replace("8192", "256"), CHUNK);
    assertThat(collectives(plan)).containsExactly("r");
    assertThat(only(plan).action()).isEqualTo(Action.WHOLE);
    assertThat(only(plan).reason()).isEqualTo(Reason.NO_GAIN);
  }

  /** Ranks may reduce the same shape, and get it from products of others. */
  @Test
  void piecesDivideTheProductsOfAllRanks() {
    var text =
        """
        graph product(x: f32[16, 4], w: f32[4, 8]) ranks [0, 1] {
          y = aten::mm(x, w)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          return r
        }
        graph product(x: f32[%1$s, 4], w: f32[4, %2$s]) ranks [2, 3] {
          y = aten::mm(x, w)
          v = aten::view(y, [16, 8])
          r = _c10d_functional::all_reduce(v, "sum", "tp")
          return r
        }
        """;
    var chunk = RewriteOptions.OFF.withChunk(Mode.ON);
    assertThat(only(plan(text.formatted(2, 64), chunk)).pieces()).isEqualTo(2);
    var whole = only(plan(text.formatted(1, 128), chunk));
    assertThat(whole.reason()).isEqualTo(Reason.SIZE);
    assertThat(whole.detail()).isEqualTo("its 1 rows do not divide into large pieces");
  }

  /** An unknown op between the product and the collective writes what the product has read. */
  @Test
  void whatMayChangeAnOperandLaterKeepsTheProductWhole() {
    var change = "op test::change(Tensor(a! -> *) x) -> ()\n\ngraph product";
    for (var operand : List.of("x", "w")) {
      var text =
          PRODUCT
              .replace("graph product", change)
              .replace("  r = ", "  test::change(%s)\n  r = ".formatted(operand));
      assertThat(text).contains("test::change(" + operand + ")");
      var plan = plan(text, RewriteOptions.OFF.withChunk(Mode.ON));
      assertThat(plan.rewrites()).as(operand).isEmpty();
      assertThat(collectives(plan)).as(operand).containsExactly("r");
    }
  }

  @Test
  void whatAlsoReadsTheProductKeepsItWhole() {
    var plan =
        plan(
            """
            graph product(x: bf16[8192, 8192], w: bf16[8192, 8192]) {
              y = aten::mm(x, w)
              r = _c10d_functional::all_reduce(y, "sum", "tp")
              return r, y
            }
            """,
            new RewriteOptions(Mode.OFF, Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF));
    assertThat(collectives(plan)).containsExactly("r");
    assertThat(plan.rewrites()).isEmpty();
  }
}
