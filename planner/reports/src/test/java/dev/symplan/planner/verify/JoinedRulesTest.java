package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Results of collectives in rows between those of what they are joined with. */
class JoinedRulesTest {
  private static final String HEAD =
      """
      graph version 1
      group g = [0, 1]
      """;

  private static final String GATHER =
      """
      graph gather(x: bf16[1024, 1024], o: bf16[2048, 2048], w: bf16[3072, 512]) {
        y = aten::neg(x)
        r = _c10d_functional::all_gather_into_tensor(y, 2, "g")
        f = _c10d_functional::wait_tensor(r)
        c = aten::cat([f, o], 1)
        m = aten::mm(c, w)
        return m
      }
      """;

  private static final String STACK =
      """
      graph stack(x: bf16[1024, 1024], y: bf16[1024, 1024]) {
        a = aten::neg(x)
        b = aten::exp(y)
        r, s = _c10d_functional::all_gather_into_tensor_coalesced([a, b], 2, "g")
        c = aten::stack([r, s], 1)
        return c
      }
      """;

  private static final String REDUCE =
      """
      graph reduce(x: bf16[2048, 1024], p: bf16[1024, 1024], o: bf16[2048, 1024]) {
        y = aten::mm(x, p)
        r = _c10d_functional::all_reduce(y, "sum", "g")
        c = aten::cat([o, r], -1)
        s = aten::sum.dim_IntList(c, [0], False)
        return s
      }
      """;

  private static final String EXCHANGE =
      """
      graph exchange(x: bf16[2048, 1024], o: bf16[2048, 1024], w: bf16[2048, 512]) {
        a = aten::neg(x)
        r = _c10d_functional::all_to_all_single(a, [1024, 1024], [1024, 1024], "g")
        c = aten::cat([r, o], 1)
        m = aten::mm(c, w)
        return m
      }
      """;

  private static final long MIB = 1 << 20;

  private static Plan plan(String text, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("joined.graph", HEAD + text)));
  }

  private static Plan plan(String text) {
    return plan(text, CompileOptions.DEFAULT);
  }

  private static Plan gather(Variant variant) {
    return plan(
        GATHER, CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_gather", variant)));
  }

  private static Placement place(Plan plan, String value) {
    var edits = PlanEdits.of(plan);
    return edits.rank(0).placement(edits.value(0, value));
  }

  private static int bufferOf(Plan plan, String value) {
    return place(plan, value).buffer();
  }

  private static List<Rule> rules(Plan plan) {
    return PlanVerifier.verify(plan).stream().map(Violation::rule).toList();
  }

  /** Without rows, the result of the collective is in memory beside what it is copied into. */
  @ParameterizedTest
  @CsvSource({
    "GATHER, 16, 14",
    "STACK, 16, 12",
    "REDUCE, 12, 8",
    "EXCHANGE, 12, 12",
  })
  void memoryOfCopiesIsSaved(String name, long apart, long together) {
    var text =
        switch (name) {
          case "GATHER" -> GATHER;
          case "STACK" -> STACK;
          case "REDUCE" -> REDUCE;
          default -> EXCHANGE;
        };
    var rewrites = CompileOptions.DEFAULT.rewrites().withLayouts(Mode.OFF);
    var without = plan(text, CompileOptions.DEFAULT.withRewrites(rewrites));
    assertThat(place(without, "r").isInRows()).isFalse();
    assertThat(without.total().bytes() / MIB).isEqualTo(apart);
    var with = plan(text);
    assertThat(place(with, "r").isInRows()).isTrue();
    assertThat(bufferOf(with, "r")).isEqualTo(bufferOf(with, "c"));
    assertThat(with.total().bytes() / MIB).isEqualTo(together);
    assertThat(PlanVerifier.verify(with)).isEmpty();
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "PUSH", "COPY_ENGINE"})
  void rowsLieWhereTheResultHasThem(Variant variant) {
    var plan = gather(variant);
    var rows = Placement.rows(bufferOf(plan, "c"), 0, 2048, 6144);
    assertThat(place(plan, "r")).isEqualTo(rows);
    assertThat(place(plan, "f")).isEqualTo(rows);
    var read = PlanFile.read(new SourceFile("plan", PlanFile.toJson(plan)));
    assertThat(place(read, "r")).isEqualTo(rows);
    assertThat(PlanFile.toJson(read)).isEqualTo(PlanFile.toJson(plan));
  }

  /** The product is written where it is reduced, and that is where it is joined. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"TWO_SHOT", "ONE_SHOT_PUSH", "TWO_SHOT_PUSH"})
  void whatIsReducedInPlaceIsInRowsToo(Variant variant) {
    var text = REDUCE.replace("2048", "256");
    var plan =
        plan(text, CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", variant)));
    assertThat(place(plan, "y")).isEqualTo(place(plan, "r"));
    assertThat(place(plan, "y")).isEqualTo(Placement.rows(bufferOf(plan, "c"), 2048, 2048, 4096));
    assertThat(plan.forRank(0).collectives().getFirst().inPlace()).isTrue();
    var apart = Placement.rows(bufferOf(plan, "c"), 0, 2048, 4096);
    assertThat(rules(PlanEdits.of(plan).placement("y", apart).restated()))
        .contains(Rule.OVERWRITTEN, Rule.REALIZATION);
    var run = new Placement(bufferOf(plan, "c"), 2048);
    assertThat(rules(PlanEdits.of(plan).placement("y", run).restated())).contains(Rule.OVERWRITTEN);
  }

  /** What has another reader is reduced elsewhere, and only the result is in rows. */
  @Test
  void whatOthersReadIsNotReducedInPlace() {
    var text =
        REDUCE
            .replace("s = aten", "n = aten::exp(y)\n  s = aten")
            .replace("return s", "return s, n");
    var plan = plan(text);
    assertThat(place(plan, "y").isInRows()).isFalse();
  }

  @Test
  void reportsSayWhereRowsLie() {
    var text =
        PlanExplainer.explain(gather(Variant.PUSH), "r").map(TextRenderer::row).orElseThrow();
    assertThat(text)
        .contains("symm+0x0+row*0x1800, 4.0 MiB of the buffer 'r' (12.0 MiB)")
        .contains(
            "of 2.0 KiB, and from one to the next 6.0 KiB: those of other tensors lie between")
        .contains("result    r zero-copy: the collective writes its rows where c joins them");
  }

  /** Puts all views of a piece elsewhere. */
  private static Plan moved(Plan plan, Placement to) {
    var edits = PlanEdits.of(plan);
    for (var value : List.of("r", "f")) {
      edits.placement(value, to);
    }
    return edits.restated();
  }

  @ParameterizedTest
  @CsvSource({
    "2048, 2048, 6144, it does not begin where the result has it",
    "4096, 2048, 6144, it is where another piece is",
    "16, 2048, 6144, it begins a little later",
    "0, 2048, 6160, rows are too far apart",
    "0, 2048, 4096, rows are too close",
    "0, 1024, 6144, rows are too short",
    "0, 4096, 6144, rows are too long",
  })
  void otherRowsAreRejected(long offset, long bytes, long pitch, String why) {
    var plan = gather(Variant.ONE_SHOT);
    var other = Placement.rows(bufferOf(plan, "c"), offset, bytes, pitch);
    assertThat(rules(moved(plan, other))).as(why).contains(Rule.OVERWRITTEN);
  }

  @Test
  void viewsLieAsTheirPiecesDo() {
    var plan = gather(Variant.ONE_SHOT);
    var run = new Placement(bufferOf(plan, "c"), 0);
    assertThat(rules(PlanEdits.of(plan).placement("f", run).restated())).contains(Rule.PLACEMENT);
    assertThat(rules(moved(plan, run))).contains(Rule.OVERWRITTEN);
  }

  @Test
  void piecesDoNotTakeEachOthersRows() {
    var plan = plan(STACK);
    var one = place(plan, "r");
    var other = place(plan, "s");
    assertThat(one.offset()).isZero();
    assertThat(other.offset()).isEqualTo(2048);
    var swapped = PlanEdits.of(plan).placement("r", other).placement("s", one).restated();
    assertThat(rules(swapped)).contains(Rule.OVERWRITTEN);
    var both = PlanEdits.of(plan).placement("s", one).restated();
    assertThat(rules(both)).contains(Rule.OVERWRITTEN);
  }

  @Test
  void whatIsJoinedLivesFromItsFirstPieceOn() {
    var plan = gather(Variant.ONE_SHOT);
    var buffer = plan.forRank(0).buffers().get(bufferOf(plan, "c"));
    var late =
        PlanEdits.of(plan)
            .buffer(buffer.name(), b -> PlanEdits.lives(b, b.first() + 1, b.last()))
            .plan();
    assertThat(rules(late)).contains(Rule.LIFETIME);
  }

  /** The maker of the operand is put where the piece will be written. */
  @Test
  void nothingElseLiesInRowsThatAreWritten() {
    var plan = gather(Variant.ONE_SHOT);
    var into = PlanEdits.of(plan).placement("y", new Placement(bufferOf(plan, "c"), 0)).restated();
    assertThat(rules(into)).contains(Rule.OVERWRITTEN);
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"NCCL", "NCCL_SYMM"})
  void onlyVariantsThatWriteRowsMay(Variant variant) {
    var own = gather(variant);
    assertThat(place(own, "r").isInRows()).isFalse();
    int buffer = bufferOf(own, "c");
    assertThat(PlanVerifier.verify(moved(own, Placement.rows(buffer, 0, 2048, 6144))))
        .extracting(Violation::message)
        .anyMatch(message -> message.contains("rows of other tensors lie between those of r"))
        .anyMatch(message -> message.contains("nothing writes it so"));
  }

  @ParameterizedTest
  @CsvSource({
    "d = aten::exp(r), aten::exp → d",
    "d = aten::slice.Tensor(r; 0; 0; 8), aten::slice",
  })
  void onlyWhatJoinsThemReadsThem(String line, String who) {
    var text =
        """
        graph read(x: f32[8, 64], o: f32[16, 32]) {
          y = aten::neg(x)
          r = _c10d_functional::all_gather_into_tensor(y, 2, "g")
          c = aten::cat([r, o], 1)
          %s
          e = aten::sum.dim_IntList(d, [0], False)
          s = aten::sum.dim_IntList(c, [0], False)
          return s, e
        }
        """
            .formatted(line.replace(';', ','));
    var plan =
        plan(
            text,
            CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_gather", Variant.ONE_SHOT)));
    assertThat(place(plan, "r").isInRows()).isFalse();
    var rows = Placement.rows(bufferOf(plan, "c"), 0, 256, 384);
    var edits = PlanEdits.of(plan).placement("r", rows);
    assertThat(PlanVerifier.verify(edits.restated()))
        .extracting(Violation::message)
        .anyMatch(
            message ->
                message.startsWith("rows of other tensors lie between those of r, but " + who));
  }

  @Test
  void theCallerReadsNoRows() {
    var text =
        """
        graph output(x: f32[8, 64], o: f32[16, 32]) {
          y = aten::neg(x)
          r = _c10d_functional::all_gather_into_tensor(y, 2, "g")
          c = aten::cat([r, o], 1)
          return c, r
        }
        """;
    var plan = plan(text);
    assertThat(place(plan, "r").isInRows()).isFalse();
    var rows = Placement.rows(bufferOf(plan, "c"), 0, 256, 384);
    assertThat(PlanVerifier.verify(PlanEdits.of(plan).placement("r", rows).restated()))
        .extracting(Violation::message)
        .anyMatch(message -> message.endsWith("but the caller does not know it"));
  }

  /** Rank 1 has another piece in front, so that peers would look for the rows in another place. */
  @Test
  void ranksWithOtherGraphsHaveNoSymmetricRows() {
    var text =
        """
        graph rows(x: f32[8, 64], o: f32[16, 32]) ranks [RANK] {
          y = aten::neg(x)
          r = _c10d_functional::all_gather_into_tensor(y, 2, "g")
          c = aten::cat(PIECES, 1)
          s = aten::sum.dim_IntList(c, [0], False)
          return s
        }
        """;
    var both =
        text.replace("RANK", "0").replace("PIECES", "[r, o]")
            + text.replace("RANK", "1").replace("PIECES", "[o, r]");
    var push =
        plan(
            both, CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_gather", Variant.PUSH)));
    assertThat(place(push, "r").isInRows()).isFalse();
    var pull =
        plan(
            both,
            CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_gather", Variant.ONE_SHOT)));
    assertThat(place(pull, "r").offset()).isZero();
    assertThat(pull.forRank(1).placements())
        .contains(Placement.rows(bufferOf(pull, "c"), 128, 256, 384));
  }
}
