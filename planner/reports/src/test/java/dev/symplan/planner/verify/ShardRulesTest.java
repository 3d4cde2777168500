package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.VerifierFixtures.first;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.planner.verify.Violation.Rule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Shares in the whole: where they may be, and where they are on each rank. */
class ShardRulesTest {
  /** Two groups of two, so that a rank and its position in the group differ. */
  private static final String GATHER =
      """
      graph version 1
      group g = [0, 1], [2, 3]
      graph gather(x: f32[64, 32], w: f32[32, 64]) {
        y = aten::mm(x, w)
        r = _c10d_functional::all_gather_into_tensor(y, 2, "g")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  private static final String SCATTER =
      """
      graph version 1
      group g = [0, 1], [2, 3]
      graph scatter(x: f32[64, 32], w: f32[32, 64]) {
        y = aten::mm(x, w)
        r = _c10d_functional::reduce_scatter_tensor(y, "sum", 2, "g")
        o = _c10d_functional::wait_tensor(r)
        s = aten::sum(o)
        return s
      }
      """;

  private static final long SHARE = 64 * 64 * 4;

  private static Plan plan(String text, String kind, Variant variant) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withVariants(ImmutableMap.of(kind, variant)))
        .compile(GraphParser.parse(new SourceFile("share.graph", text)));
  }

  private static Plan gather(Variant variant) {
    return plan(GATHER, "all_gather", variant);
  }

  private static Placement place(Plan plan, String value) {
    var edits = PlanEdits.of(plan);
    return edits.rank(0).placement(edits.value(0, value));
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"PUSH", "COPY_ENGINE", "NCCL"})
  void whatIsGatheredIsWrittenWhereTheResultHasIt(Variant variant) {
    var plan = gather(variant);
    var share = place(plan, "y");
    assertThat(share).isEqualTo(new Placement(place(plan, "r").buffer(), 0, 0, SHARE));
    assertThat(plan.total().bytes()).isEqualTo(2 * SHARE);
    for (int rank = 0; rank < 4; rank++) {
      assertThat(plan.shift(rank, share)).isEqualTo(rank % 2 * SHARE);
    }
    var read = PlanFile.read(new SourceFile("plan", PlanFile.toJson(plan)));
    assertThat(place(read, "y")).isEqualTo(share);
  }

  @Test
  void aShardMayBeginAsAnotherViewOfItsBytes() {
    var transposed =
        """
        graph version 1
        group g = [0, 1], [2, 3]
        graph gather(x: f32[64, 64][1, 64]) {
          y = aten::relu(x)
          t = aten::t(y)
          r = _c10d_functional::all_gather_into_tensor(t, 2, "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    var plan = plan(transposed, "all_gather", Variant.PUSH);
    var share = new Placement(place(plan, "r").buffer(), 0, 0, SHARE);
    assertThat(place(plan, "y")).isEqualTo(share);
    assertThat(place(plan, "t")).isEqualTo(share);
  }

  @Test
  void reportsSayThatThePlaceDependsOnTheRank() {
    var plan = gather(Variant.PUSH);
    assertThat(PlanExplainer.explain(plan, "y").map(TextRenderer::row).orElseThrow())
        .contains("symm+0x0+rank*0x4000, 16.0 KiB of the buffer 'y' (32.0 KiB)")
        .contains("of r: each rank of group g has its own, 16.0 KiB after the previous rank's");
  }

  private static final String COLUMNS =
      """
      graph version 1
      group g = [0, 1], [2, 3]
      graph columns(x: f32[64, 64], w: f32[64, 64]) {
        y = aten::mm(x, w)
        v = aten::view(y, [1, 64, 64])
        r = symplan::all_gather_dim(v, 2, 2, "g")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  /** Each rank's columns lie between those of the others. */
  @Test
  void aProductIsWrittenInTheRowsOfTheWhole() {
    var plan = plan(COLUMNS, "all_gather", Variant.PUSH);
    var share = new Placement(place(plan, "r").buffer(), 0, 0, 64 * 4);
    assertThat(place(plan, "y")).isEqualTo(share);
    assertThat(place(plan, "v")).isEqualTo(share);
    assertThat(plan.total().bytes()).isEqualTo(2 * SHARE);
    assertThat(plan.shift(3, share)).isEqualTo(64 * 4);
    var y = PlanEdits.of(plan).value(0, "y");
    assertThat(plan.typeInMemory(3, y).strides().asList()).containsExactly(128L, 1L);
    assertThat(PlanExplainer.explain(plan, "y").map(TextRenderer::row).orElseThrow())
        .contains("of r: in each row of it, each rank of group g has its own 256 B");
    var whole = new Placement(share.buffer(), 0, 0, SHARE);
    assertThat(
            first(
                    PlanEdits.of(plan).placement("y", whole).placement("v", whole).restated(),
                    Rule.OVERWRITTEN)
                .message())
        .endsWith("which has shards of 16384 bytes, 16384 bytes apart, in 32768");
  }

  /** Where ops would not know of the rows of others, a shard has memory of its own. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "aten::cumsum(x, 1) | 64 | nothing writes it so",
        "aten::mm(x, w) s = aten::sum(y) | 64 | aten::sum → s does not know it",
        "aten::mm(x, w) | 65 | nothing writes it so"
      })
  void otherOpsDoNotMeetRows(String made, int columns, String why) {
    var text =
        COLUMNS
            .replace("aten::mm(x, w)", made.replace(" s =", "\n  s ="))
            .replace("64]) {", columns + "]) {")
            .replace("return o", made.contains("s =") ? "return o, s" : "return o")
            .replace("64, 64])\n  r", "64, %s])\n  r".formatted(columns));
    var plan = plan(text, "all_gather", Variant.PUSH);
    assertThat(place(plan, "y").isShard()).isFalse();
    var share = new Placement(place(plan, "r").buffer(), 0, 0, columns * 4L);
    var edited = PlanEdits.of(plan).placement("y", share).placement("v", share).restated();
    assertThat(first(edited, Rule.OVERWRITTEN).message())
        .isEqualTo("rows of other ranks lie between those of y, but " + why);
  }

  @Test
  void whatPeersReadLiesAtTheSameOffsetEverywhere() {
    var plan = gather(Variant.ONE_SHOT);
    assertThat(place(plan, "y").isShard()).isFalse();
    assertThat(plan.total().bytes()).isEqualTo(3 * SHARE);
  }

  @Test
  void whatIsScatteredStaysWhereTheOperandHasIt() {
    var plan = plan(SCATTER, "reduce_scatter", Variant.ONE_SHOT);
    var share = place(plan, "r");
    assertThat(share).isEqualTo(new Placement(place(plan, "y").buffer(), 0, 0, SHARE / 2));
    assertThat(plan.shift(3, share)).isEqualTo(SHARE / 2);
  }

  @Test
  void aPartThatAPeerWrites() {
    var plan = gather(Variant.PUSH);
    var buffer = place(plan, "y").buffer();
    var one = PlanEdits.of(plan).placement("y", new Placement(buffer, 0)).restated();
    assertThat(first(one, Rule.OVERWRITTEN).message())
        .contains("r at ")
        .contains("over its operand y");
    var half = new Placement(buffer, 0, 0, SHARE / 2);
    assertThat(
            first(PlanEdits.of(plan).placement("y", half).restated(), Rule.OVERWRITTEN).message())
        .isEqualTo(
            "the plan puts y into the whole of _c10d_functional::all_gather_into_tensor → r, which"
                + " has shards of 16384 bytes, 8192 bytes apart, in 32768");
    var late = new Placement(buffer, 1024, 0, SHARE);
    assertThat(
            first(PlanEdits.of(plan).placement("y", late).restated(), Rule.OVERWRITTEN).message())
        .contains("which has its whole at symm+0x0, but the first shard at symm+0x400");
  }

  @Test
  void aCollectiveThatIsNotThere() {
    var plan = gather(Variant.PUSH);
    var none = new Placement(place(plan, "y").buffer(), 0, 7, SHARE);
    assertThat(first(PlanEdits.of(plan).placement("y", none).plan(), Rule.STRUCTURE).message())
        .isEqualTo("y is a shard of collective 7, which does not exist");
  }

  @Test
  void aVariantWhosePeersReadIt() {
    var pushed = gather(Variant.PUSH);
    var plan = gather(Variant.ONE_SHOT);
    var share = new Placement(place(plan, "r").buffer(), 0, 0, SHARE);
    assertThat(place(pushed, "y").stride()).isEqualTo(share.stride());
    assertThat(
            first(PlanEdits.of(plan).placement("y", share).restated(), Rule.OVERWRITTEN).message())
        .endsWith("which is one_shot, whose shards must not overlap");
  }

  @Test
  void aShareThatAnotherCollectiveNeedsAtOneOffset() {
    var text =
        """
        graph version 1
        group g = [0, 1, 2, 3]
        graph both(x: f32[64, 64]) {
          a = aten::neg(x)
          r = _c10d_functional::all_reduce(a, "sum", "g")
          q = _c10d_functional::all_gather_into_tensor(a, 4, "g")
          return r, q
        }
        """;
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(
                CompileOptions.DEFAULT.withVariants(
                    ImmutableMap.of("all_reduce", Variant.ONE_SHOT, "all_gather", Variant.PUSH)))
            .compile(GraphParser.parse(new SourceFile("share.graph", text)));
    var share = new Placement(place(plan, "q").buffer(), 0, 1, SHARE);
    assertThat(
            first(PlanEdits.of(plan).placement("a", share).restated(), Rule.REALIZATION).message())
        .contains(
            "reads a of every rank as one_shot, but its offset differs between ranks, from"
                + " symm+0x");
  }

  /** The rows that another tensor of the collective still has to bring are there, too. */
  @Test
  void aShareInTheWholeOfTwoTensors() {
    assertOthersThere("[y, y]", "y");
    assertOthersThere("[y, v]", "v");
  }

  private static void assertOthersThere(String operands, String other) {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph scatter(x: f32[64, 32], w: f32[32, 64]) {
          y = aten::mm(x, w)
          v = aten::slice.Tensor(y, 0, 32, 64)
          p, q = _c10d_functional::reduce_scatter_tensor_coalesced(OPERANDS, "sum", 2, "g")
          s = aten::sum(y)
          return p, q, s
        }
        """;
    var plan = plan(text.replace("OPERANDS", operands), "reduce_scatter", Variant.ONE_SHOT);
    var share = new Placement(place(plan, "y").buffer(), 0, 0, SHARE / 2);
    assertThat(PlanVerifier.verify(PlanEdits.of(plan).placement("p", share).restated()))
        .extracting(Violation::message)
        .contains(
            "the plan puts p into the whole of"
                + " _c10d_functional::reduce_scatter_tensor_coalesced → p, which also has "
                + other
                + " there");
  }
}
