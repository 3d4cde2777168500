package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.VerifierFixtures.compile;
import static dev.symplan.planner.verify.VerifierFixtures.variants;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Barrier.Edge;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.planner.verify.Violation.Rule;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which barriers plans do without, and what is said of those that they may not. */
class BarrierRulesTest {

  /** Three pulls of what the caller brings. */
  private static final String INPUTS =
      """
      graph pulls(x: f32[64, 64], y: f32[64, 64], z: f32[64, 64]) {
        a = _c10d_functional::all_reduce(x, "sum", "tp")
        b = _c10d_functional::all_reduce(y, "sum", "tp")
        c = _c10d_functional::all_reduce(z, "sum", "tp")
        return a, b, c
      }
      """;

  /** Three pulls, each of what was computed from the one before. */
  private static final String LAYERS =
      """
      graph layers(x: f32[64, 64], w: f32[64, 64]) {
        a = aten::mm(x, w)
        p = _c10d_functional::all_reduce(a, "sum", "tp")
        b = aten::mm(p, w)
        q = _c10d_functional::all_reduce(b, "sum", "tp")
        c = aten::mm(q, w)
        r = _c10d_functional::all_reduce(c, "sum", "tp")
        return r
      }
      """;

  private static final CompileOptions ONE_SHOT =
      variants("all_reduce", Variant.ONE_SHOT).withOverlap(false);

  private static List<String> barriers(Plan plan) {
    return plan.rankPlans().getFirst().collectives().stream()
        .map(c -> c.start().text() + ", " + c.end().text())
        .toList();
  }

  @Test
  void oneMeetingBeforeAndOneBehindAll() {
    var plan = compile(INPUTS, ONE_SHOT);
    assertThat(barriers(plan))
        .containsExactly("own, end of 2", "start of 0, end of 2", "start of 0, own");
    assertThat(TextRenderer.render(PlanReport.of(plan, List.of(View.SUMMARY))))
        .contains("barriers 2 of 6: the others are redundant");
    assertThat(TextRenderer.render(PlanReport.of(plan, List.of(View.SCHEDULE))))
        .contains("as one_shot, start barrier: the start of a, end barrier: the end of c");
    assertThat(PlanExplainer.explain(plan, "b").map(TextRenderer::row))
        .hasValueSatisfying(
            story ->
                assertThat(story)
                    .containsPattern("barriers +before: the start of a, after: the end"));
  }

  @Test
  void planFilesKeepThem(@TempDir Path folder) throws IOException {
    var plan = compile(INPUTS, ONE_SHOT);
    var file = folder.resolve("plan.json");
    PlanFile.write(plan, file);
    assertThat(Files.readString(file)).contains("\"start of 0\"");
    assertThat(barriers(PlanFile.read(new SourceFile("plan.json", Files.readString(file)))))
        .isEqualTo(barriers(plan));
  }

  @Test
  void everyCollectiveMeetsWhereItsOperandIsMadeBefore() {
    var plan = compile(LAYERS, ONE_SHOT);
    assertThat(barriers(plan))
        .allSatisfy(text -> assertThat(text).startsWith("own, "))
        .last()
        .isEqualTo("own, own");
  }

  @Test
  void resultsThatPeersWriteAreMetForWhereTheyAreRead() {
    var plan = compile(LAYERS, variants("all_reduce", Variant.TWO_SHOT).withOverlap(false));
    assertThat(barriers(plan)).containsOnly("own, own");
  }

  /** The step before the first one makes the operands of both. */
  private static final String MAKERS =
      """
      graph makers(x: f32[64, 64]) {
        a = aten::neg(x)
        b = aten::relu(x)
        p = symplan::%s(b, %s0, 4, "tp")
        q = _c10d_functional::all_reduce(a, "sum", "tp")
        return p, q
      }
      """;

  /** It may run in the kernel of the first one, behind its start. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {"reduce_scatter_dim | 'sum', | ONE_SHOT", "all_gather_dim | | PUSH"})
  void startsSayNothingOfWhatIsMadeInTheirKernels(
      String op, @Nullable String reduction, Variant variant) {
    var text = MAKERS.formatted(op, reduction == null ? "" : reduction.replace('\'', '"'));
    var kind = op.replace("_dim", "");
    var options =
        ONE_SHOT.withVariants(ImmutableMap.of(kind, variant, "all_reduce", Variant.ONE_SHOT));
    var plan = compile(text, options);
    assertThat(plan.rankPlans().getFirst().steps())
        .containsExactly(
            new Step.Fused(ImmutableIntArray.of(0, 1)), new Step.Start(0), new Step.Start(1));
    assertThat(plan.rankPlans().getFirst().collectives().get(1).startBarrier()).isTrue();
    for (var edge : Edge.values()) {
      var wrong =
          PlanEdits.of(plan)
              .collective(0, c -> PlanEdits.barriers(c, true, true))
              .collective(1, start(0, edge))
              .plan();
      assertThat(VerifierFixtures.first(wrong, Rule.RACE).message())
          .startsWith("_c10d_functional::all_reduce → q begins without a barrier of its own")
          .contains("but step 0 (2 fused ops");
    }
    // A copy engine runs no kernel that could.
    if (variant == Variant.PUSH) {
      var copies =
          options.withVariants(
              ImmutableMap.of(kind, Variant.COPY_ENGINE, "all_reduce", Variant.ONE_SHOT));
      assertThat(compile(text, copies).rankPlans().getFirst().collectives().get(1).start())
          .isEqualTo(new Barrier.StandIn(0, Edge.START));
    }
  }

  @Test
  void collectivesBesideComputeKeepTheirs() {
    var plan = compile(VerifierFixtures.ASYNC);
    var beside =
        plan.rankPlans().getFirst().collectives().stream().filter(CollectivePlan::isAsync).toList();
    assertThat(beside).isNotEmpty();
    assertThat(beside).allMatch(c -> c.startBarrier() && c.endBarrier());
  }

  @Test
  void groupsDoNotStandInForEachOther() {
    var plan = compile(INPUTS.replace("y, \"sum\", \"tp\"", "y, \"sum\", \"pairs\""), ONE_SHOT);
    assertThat(barriers(plan)).containsOnly("own, own");
  }

  private static UnaryOperator<CollectivePlan> start(int witness, Edge edge) {
    return c -> c.withBarriers(new Barrier.StandIn(witness, edge), c.end());
  }

  private static UnaryOperator<CollectivePlan> end(int witness, Edge edge) {
    return c -> c.withBarriers(c.start(), new Barrier.StandIn(witness, edge));
  }

  private static String told(Plan plan) {
    return PlanVerifier.verify(plan).stream()
        .map(
            violation ->
                violation
                    + "\n"
                    + IntStream.range(0, violation.trace().size())
                        .mapToObj(i -> "  %s. %s\n".formatted(i + 1, violation.trace().get(i)))
                        .collect(Collectors.joining()))
        .collect(Collectors.joining("\n"));
  }

  @Test
  void tracesCanBeFollowed() {
    var layers = PlanEdits.of(compile(LAYERS, ONE_SHOT)).ownBarriers().plan();
    var told = new StringBuilder();
    told.append("== no barrier before\n");
    told.append(
        told(PlanEdits.of(layers).collective(1, c -> PlanEdits.barriers(c, false, true)).plan()));
    told.append("\n== no barrier after\n");
    told.append(
        told(PlanEdits.of(layers).collective(1, c -> PlanEdits.barriers(c, true, false)).plan()));
    told.append("\n== the barrier before is passed before the operand is written\n");
    told.append(told(PlanEdits.of(layers).collective(1, start(0, Edge.END)).plan()));
    told.append("\n== the operand is rewritten before the barrier behind\n");
    told.append(told(PlanEdits.of(layers).collective(0, end(2, Edge.START)).plan()));
    told.append("\n== the result is read before the barrier behind\n");
    var pushed =
        PlanEdits.of(compile(LAYERS, variants("all_reduce", Variant.TWO_SHOT).withOverlap(false)));
    told.append(told(pushed.collective(0, end(1, Edge.START)).plan()));
    told.append("\n== what stands in is behind\n");
    told.append(told(PlanEdits.of(layers).collective(1, start(2, Edge.END)).plan()));
    told.append("\n== what stands in is nothing of the kind\n");
    told.append(told(PlanEdits.of(layers).collective(1, start(7, Edge.END)).plan()));
    told.append("\n== another tensor lies there when a local op reads\n");
    told.append(told(PlanEdits.of(compile(VerifierFixtures.BESIDE)).over("c", "a").restated()));
    told.append("\n== a local op writes what a collective beside it reads\n");
    told.append(told(PlanEdits.of(compile(VerifierFixtures.ASYNC)).over("a", "p").restated()));
    Golden.check("verify/traces.txt", told.toString());
  }

  /** The result of the op may be its argument, in whose memory peers write the second result. */
  @Test
  void whatATensorMayBeInIsUsedWithIt() {
    var text =
        """
        op mine::pass(Tensor(a) x) -> Tensor(a)
        graph pushes(x: f32[64, 64], y: f32[64, 64]) {
          a = aten::relu(x)
          b: f32[64, 64] = mine::pass(a)
          r = _c10d_functional::all_to_all_single(y, [], [], "tp")
          m = aten::mm(b, y)
          s = _c10d_functional::all_to_all_single(m, [], [], "tp")
          return r, s
        }
        """;
    var base = compile(text, variants("all_to_all", Variant.PUSH).withOverlap(false));
    assertThat(barriers(base)).last().asString().startsWith("own, ");
    var plan = PlanEdits.of(base).ownBarriers().collective(1, start(0, Edge.END)).plan();
    assertThat(VerifierFixtures.first(plan, Violation.Rule.RACE).message())
        .contains("so peers may access s from", "(aten::mm → m) uses its memory");
  }

  @Test
  void whatStandsInIsOfTheGroup() {
    var text = INPUTS.replace("y, \"sum\", \"tp\"", "y, \"sum\", \"pairs\"");
    var plan = PlanEdits.of(compile(text, ONE_SHOT)).collective(2, start(1, Edge.START)).plan();
    assertThat(VerifierFixtures.first(plan, Violation.Rule.RACE).message())
        .endsWith("the start of _c10d_functional::all_reduce → b belongs to group pairs, not tp");
    plan = PlanEdits.of(compile(text, ONE_SHOT)).collective(2, start(0, Edge.END)).plan();
    assertThat(VerifierFixtures.first(plan, Violation.Rule.RACE).message())
        .endsWith("group pairs meets in _c10d_functional::all_reduce → b");
  }

  @Test
  void plainNcclStandsInForNothing() {
    var options =
        CompileOptions.DEFAULT
            .withVariants(ImmutableMap.of("a", Variant.NCCL, "all_reduce", Variant.ONE_SHOT))
            .withOverlap(false);
    var base = compile(INPUTS, options);
    assertThat(base.rankPlans().getFirst().collectives().getFirst().variant())
        .isEqualTo(Variant.NCCL);
    assertThat(barriers(base)).containsExactly("own, own", "own, end of 2", "start of 1, own");
    var plan = PlanEdits.of(base).collective(1, start(0, Edge.END)).plan();
    assertThat(VerifierFixtures.first(plan, Violation.Rule.RACE).message())
        .contains("is nccl on the compute stream: only the plan's own barriers");
  }

  @Test
  void farAwayIsTooFar() {
    var steps = new StringBuilder();
    for (int i = 0; i < 300; i++) {
      steps.append("  m%s = aten::mm(%s, w)\n".formatted(i, i == 0 ? "w" : "m" + (i - 1)));
    }
    var text =
        """
        graph far(x: f32[64, 64], y: f32[64, 64], w: f32[64, 64]) {
          a = _c10d_functional::all_reduce(x, "sum", "tp")
        %s  b = _c10d_functional::all_reduce(y, "sum", "tp")
          return a, b, m299
        }
        """
            .formatted(steps);
    var base = compile(text, ONE_SHOT);
    assertThat(base.rankPlans().getFirst().steps().getFirst()).isInstanceOf(Step.Start.class);
    assertThat(barriers(base)).containsOnly("own, own");
    var plan = PlanEdits.of(base).collective(1, start(0, Edge.END)).plan();
    assertThat(VerifierFixtures.first(plan, Violation.Rule.RACE).message())
        .endsWith("too far away to check");
  }
}
