package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.VerifierFixtures.compile;
import static dev.symplan.planner.verify.VerifierFixtures.compileWithWorkspaces;
import static dev.symplan.planner.verify.VerifierFixtures.first;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Barrier.Edge;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Ops that may run in the kernel of the collective before them, and errors of plans that say so.
 */
class EpilogueRulesTest {

  /** Steps: mm, all_reduce, its epilogue, mm, all_reduce, its epilogue. */
  private static final String BLOCKS =
      """
      graph blocks(x: f32[64, 64], h: f32[64, 64], w: f32[64, 64]) {
        a = aten::mm(x, w)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        s = _c10d_functional::wait_tensor(r)
        n = aten::add.Tensor(h, s)
        e = aten::relu(n)
        b = aten::mm(e, w)
        q = _c10d_functional::all_reduce(b, "sum", "tp")
        t = _c10d_functional::wait_tensor(q)
        o = aten::add.Tensor(n, t)
        return o
      }
      """;

  private static Plan blocks() {
    return compile(BLOCKS);
  }

  private static CollectivePlan without(CollectivePlan c) {
    return PlanEdits.epilogue(c, Epilogue.none(Epilogue.Reason.ROWS));
  }

  private static CollectivePlan with(CollectivePlan c, boolean stored) {
    return PlanEdits.epilogue(c, new Epilogue(Epilogue.Reason.FUSED, stored, 1));
  }

  @Test
  void addAndReluRunInTheKernel() {
    var plan = blocks().rankPlans().getFirst();
    assertThat(plan.steps())
        .containsExactly(
            new Step.Compute(0),
            new Step.Start(0),
            new Step.Fused(ImmutableIntArray.of(3, 4)),
            new Step.Compute(5),
            new Step.Start(1),
            new Step.Compute(8));
    assertThat(plan.collectives())
        .allSatisfy(
            c -> {
              assertThat(c.variant()).isEqualTo(Variant.ONE_SHOT);
              assertThat(c.epilogue().orElseThrow().reason()).isEqualTo(Epilogue.Reason.FUSED);
              assertThat(c.epilogue().orElseThrow().stored()).isFalse();
              assertThat(c.epilogue().orElseThrow().savedMicros()).isPositive();
            });
    // Peers read the operand until the epilogue has run.
    assertThat(plan.buffers())
        .filteredOn(buffer -> buffer.name().equals("a"))
        .allSatisfy(buffer -> assertThat(buffer.last()).isEqualTo(2));
  }

  @Test
  void isOffOnDemand() {
    for (var options :
        new CompileOptions[] {
          CompileOptions.DEFAULT.withEpilogues(false), CompileOptions.DEFAULT.withFusion(false)
        }) {
      assertThat(compile(BLOCKS, options).rankPlans().getFirst().collectives())
          .allSatisfy(c -> assertThat(c.epilogue()).contains(Epilogue.none(Epilogue.Reason.OFF)));
    }
  }

  @Test
  void resultWherePeersRead() {
    var plan = PlanEdits.of(blocks()).over("e", "a").restated();
    assertThat(first(plan, Rule.RACE).message())
        .startsWith("aten::relu → e writes e at")
        .endsWith("where _c10d_functional::all_reduce → r lets peers read a until it ends");
    // As a step of its own, it may.
    var apart =
        PlanEdits.of(blocks()).collective(0, EpilogueRulesTest::without).over("e", "a").restated();
    assertThat(PlanVerifier.verify(apart)).noneMatch(found -> found.rule() == Rule.RACE);
  }

  /** Steps: mm, view, all_reduce, its epilogue. What is reduced may lie in a. */
  @Test
  void resultWhereTheOperandMayBe() {
    var text =
        """
        op test::view(Tensor(a) x) -> Tensor(a)
        graph moved(x: f32[64, 64], w: f32[64, 64]) {
          a = aten::mm(x, w)
          v: f32[64, 64] = test::view(a)
          r = _c10d_functional::all_reduce(v, "sum", "tp")
          n = aten::add.Tensor(x, r)
          e = aten::relu(n)
          return n, e
        }
        """;
    var plan = compileWithWorkspaces(text);
    var rank = plan.forRank(0);
    assertThat(rank.collectives().getFirst())
        .matches(c -> c.variant() == Variant.ONE_SHOT_PUSH && c.hasEpilogue());
    assertThat(rank.buffers())
        .filteredOn(buffer -> Set.of("a", "v").contains(buffer.name()))
        .extracting(Buffer::last)
        .containsExactly(3, 3);
    var early = PlanEdits.of(plan).buffer("a", b -> PlanEdits.lives(b, b.first(), 2)).plan();
    assertThat(first(early, Rule.LIFETIME).message())
        .endsWith("to step 3 (2 fused ops … aten::relu → e)");
    // The kernel may still read other rows of a there.
    var over = PlanEdits.of(plan).over("e", "a").restated();
    assertThat(first(over, Rule.OVERWRITTEN).message())
        .matches("step 3 .* writes e at .* over a, which step 3 .* through another tensor");
    // As a step of its own, it may.
    var apart =
        PlanEdits.of(plan).collective(0, EpilogueRulesTest::without).over("e", "a").restated();
    assertThat(PlanVerifier.verify(apart)).noneMatch(found -> found.rule() == Rule.OVERWRITTEN);
  }

  @Test
  void sumThatAnotherStepReads() {
    var text = BLOCKS.replace("aten::mm(e, w)", "aten::mm(s, e)");
    var plan = compile(text);
    assertThat(plan.rankPlans().getFirst().collectives().getFirst().epilogue().orElseThrow())
        .matches(epilogue -> epilogue.isFused() && epilogue.stored());
    var wrong = PlanEdits.of(plan).collective(0, c -> with(c, false)).plan();
    assertThat(first(wrong, Rule.OVERWRITTEN).message())
        .isEqualTo("_c10d_functional::all_reduce → r does not store r, but aten::mm → b reads it");
  }

  @Test
  void sumThatIsAnOutput() {
    var text = BLOCKS.replace("return o", "return o, s");
    var wrong = PlanEdits.of(compile(text)).collective(0, c -> with(c, false)).plan();
    assertThat(first(wrong, Rule.OVERWRITTEN).message()).endsWith("but it is an output");
  }

  @Test
  void stepThatReadsOtherRows() {
    var text =
        BLOCKS.replace(
            "n = aten::add.Tensor(h, s)", "d = aten::t(s)\n  n = aten::add.Tensor(h, d)");
    var plan = compile(text);
    assertThat(plan.rankPlans().getFirst().collectives().getFirst().epilogue().orElseThrow())
        .isEqualTo(Epilogue.none(Epilogue.Reason.ROWS));
    var wrong = PlanEdits.of(plan).collective(0, c -> with(c, true)).plan();
    assertThat(first(wrong, Rule.RACE).message())
        .contains("does not read d row by row, but runs while _c10d_functional::all_reduce → r");
  }

  @Test
  void stepThatIsNoKernelByRows() {
    var text =
        BLOCKS.replace("e = aten::relu(n)", "e = aten::mm(n, w)").replace("(h, s)", "(h, h)");
    var wrong = PlanEdits.of(compile(text)).collective(1, c -> with(c, true)).plan();
    assertThat(PlanVerifier.verify(wrong)).isEmpty();
    var product = BLOCKS.replace("n = aten::add.Tensor(h, s)", "n = aten::mm(h, s)");
    var other = PlanEdits.of(compile(product)).collective(0, c -> with(c, true)).plan();
    assertThat(first(other, Rule.STRUCTURE).message())
        .isEqualTo("aten::mm → n cannot be fused with _c10d_functional::all_reduce → r");
  }

  /** Where pieces lie side by side already, nothing runs for it. */
  @Test
  void concatenation() {
    var text =
        """
        graph joins(x: f32[8, 64]) {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          c = aten::cat([r], 1)
          return c
        }
        """;
    var wrong = PlanEdits.of(compile(text)).collective(0, c -> with(c, true)).plan();
    assertThat(first(wrong, Rule.STRUCTURE).message())
        .isEqualTo("aten::cat → c cannot run in the kernel of _c10d_functional::all_reduce → r");
  }

  @Test
  void stepWithoutResults() {
    var text =
        "op test::log(Tensor x) -> ()\n" + BLOCKS.replace("  n = ", "  test::log(s)\n  n = ");
    var wrong = PlanEdits.of(compile(text)).collective(0, c -> with(c, true)).plan();
    assertThat(first(wrong, Rule.STRUCTURE).message())
        .isEqualTo("test::log cannot be fused with _c10d_functional::all_reduce → r");
  }

  @Test
  void variantWithoutEpilogues() {
    var wrong =
        PlanEdits.of(blocks()).collective(0, c -> PlanEdits.variant(c, Variant.NCCL)).plan();
    assertThat(first(wrong, Rule.STRUCTURE).message())
        .isEqualTo(
            "_c10d_functional::all_reduce → r cannot have an epilogue as nccl on the compute"
                + " stream");
  }

  private static Plan slices() {
    return compile(
        BLOCKS,
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.TWO_SHOT)));
  }

  /** Peers store rows to the result, which the ops read after the end. */
  @Test
  void rowsOfSlices() {
    var plan = slices();
    assertThat(plan.rankPlans().getFirst().collectives())
        .allSatisfy(
            c -> {
              assertThat(c.epilogue().orElseThrow().isFused()).isTrue();
              assertThat(c.epilogue().orElseThrow().stored()).isTrue();
              assertThat(c.endBarrier()).isTrue();
            });
    var unstored = PlanEdits.of(plan).collective(0, c -> with(c, false)).plan();
    assertThat(first(unstored, Rule.RACE).message())
        .startsWith("_c10d_functional::all_reduce → r must store r and meet");
    var odd =
        compile(
            BLOCKS.replace("f32[64, 64], h: f32[64, 64]", "f32[62, 64], h: f32[62, 64]"),
            CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.TWO_SHOT)));
    assertThat(odd.rankPlans().getFirst().collectives().getFirst().epilogue())
        .contains(Epilogue.none(Epilogue.Reason.ROWS));
    var wrong = PlanEdits.of(odd).collective(0, c -> with(c, true)).plan();
    assertThat(first(wrong, Rule.RACE).message())
        .endsWith("reads rows of s that no one of the 4 ranks stores as a whole");
  }

  /** A block takes the rows that it sent, of all slices: these are whole rows. */
  @Test
  void rowsOfPushedSlices() {
    var options =
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.TWO_SHOT_PUSH));
    var plan = compileWithWorkspaces(BLOCKS, options);
    assertThat(plan.rankPlans().getFirst().collectives())
        .allSatisfy(
            c -> {
              assertThat(c.epilogue().orElseThrow().isFused()).isTrue();
              assertThat(c.epilogue().orElseThrow().stored()).isFalse();
            });
    // It has sent them, so it may write over them, but not over others.
    var over = PlanEdits.of(plan).over("e", "a").restated();
    assertThat(PlanVerifier.verify(over)).noneMatch(found -> found.rule() == Rule.RACE);
    var beside =
        PlanEdits.of(plan)
            .over("e", "a")
            .buffer("e", b -> PlanEdits.at(b, b.offset() + 256))
            .restated();
    assertThat(first(beside, Rule.RACE).message())
        .startsWith("aten::relu → e writes e at")
        .endsWith("where _c10d_functional::all_reduce → r reads a until it ends");
    var odd =
        compileWithWorkspaces(
            BLOCKS.replace("f32[64, 64], h: f32[64, 64]", "f32[62, 64], h: f32[62, 64]"), options);
    assertThat(odd.rankPlans().getFirst().collectives().getFirst().epilogue())
        .contains(Epilogue.none(Epilogue.Reason.ROWS));
    var wrong = PlanEdits.of(odd).collective(0, c -> with(c, true)).plan();
    assertThat(first(wrong, Rule.RACE).message())
        .endsWith("reads rows of s that no one of the 4 ranks stores as a whole");
  }

  @Test
  void resultWherePeersStoreOtherRows() {
    // The all_reduce is in place, and so is the sum with its result.
    assertThat(slices().forRank(0).buffers())
        .extracting(Buffer::name)
        .containsExactly("x", "h", "w", "a", "e", "b");
    var over = PlanEdits.of(slices()).over("e", "a").restated();
    assertThat(PlanVerifier.verify(over)).noneMatch(found -> found.rule() == Rule.RACE);
    var beside =
        PlanEdits.of(slices())
            .over("e", "a")
            .buffer("e", b -> PlanEdits.at(b, b.offset() + 256))
            .restated();
    assertThat(PlanVerifier.verify(beside))
        .anySatisfy(
            found -> {
              assertThat(found.rule()).isEqualTo(Rule.RACE);
              assertThat(found.message())
                  .startsWith("aten::relu → e writes e at")
                  .endsWith("where peers store other rows of r");
            });
  }

  /** The epilogue of the second comes before its end, so the first must end before that. */
  @Test
  void endThatTheNextOneStandsInFor() {
    var text =
        """
        graph two(x: f32[64, 64], h: f32[64, 64], w: f32[64, 64]) {
          p = aten::relu(x)
          z = _c10d_functional::all_reduce(p, "sum", "tp")
          y = _c10d_functional::wait_tensor(z)
          a = aten::mm(x, w)
          r = _c10d_functional::all_reduce(a, "sum", "tp")
          s = _c10d_functional::wait_tensor(r)
          n = aten::add.Tensor(h, s)
          e = aten::relu(n)
          b = aten::mm(e, y)
          return n, b, p
        }
        """;
    var edits =
        PlanEdits.of(compile(text, CompileOptions.DEFAULT.withOverlap(false)))
            .collective(0, c -> c.withBarriers(new Barrier.Own(), new Barrier.StandIn(1, Edge.END)))
            .collective(1, c -> c.withBarriers(c.start(), new Barrier.Own()));
    assertThat(edits.rank(0).collectives().get(1).hasEpilogue()).isTrue();
    assertThat(PlanVerifier.verify(edits.plan())).isEmpty();
    // Nothing wrong but that p is lost if it were a step of its own: then that is behind the end.
    var wrong = edits.over("e", "p").restated();
    assertThat(PlanVerifier.verify(wrong))
        .anySatisfy(
            found -> {
              assertThat(found.rule()).isEqualTo(Rule.RACE);
              assertThat(found.message())
                  .startsWith("_c10d_functional::all_reduce → z ends without a barrier of its own");
            });
    var apart = edits.collective(1, EpilogueRulesTest::without).restated();
    assertThat(PlanVerifier.verify(apart)).noneMatch(found -> found.rule() == Rule.RACE);
  }
}
