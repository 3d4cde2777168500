package dev.symplan.planner;

import static dev.symplan.planner.FoldedPlans.assertStays;
import static dev.symplan.planner.FoldedPlans.only;
import static dev.symplan.planner.FoldedPlans.ops;
import static dev.symplan.planner.FoldedPlans.plan;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Collectives of packed tensors take the tensors themselves, where that is right and faster. */
class PackOptionsTest {
  private static final CompileOptions USUAL = CompileOptions.DEFAULT;
  private static final String GATHER = "_c10d_functional::all_gather_into_tensor_coalesced";
  private static final String SCATTER = "_c10d_functional::reduce_scatter_tensor_coalesced";

  private static final String BUCKET =
      """
      graph bucket(a: bf16[512, 1024], b: bf16[256, 1024]) {
        x = aten::view(a, [524288])
        y = aten::view(b, [262144])
        f = aten::cat([x, y])
        g = _c10d_functional::all_gather_into_tensor(f, 4, "g4")
        r = aten::view(g, [4, 786432])
        s, t = aten::split_with_sizes(r, [524288, 262144], 1)
        v = aten::reshape(s, [2048, 1024])
        w = aten::reshape(t, [1024, 1024])
        return v, w
      }
      """;

  private static final String GRADIENTS =
      """
      graph gradients(x: f32[64, 2048], y: f32[64, 512], w: f32[64, 512]) {
        u = aten::t(x)
        a = aten::mm(u, y)
        b = aten::mm(u, w)
        p = aten::view(a, [4, 262144])
        q = aten::view(b, [4, 262144])
        f = aten::cat([p, q], 1)
        h = aten::view(f, [2097152])
        g = _c10d_functional::reduce_scatter_tensor(h, "avg", 4, "g4")
        s, t = aten::split.Tensor(g, 262144)
        v = aten::view(s, [512, 512])
        z = aten::view(t, [512, 512])
        return v, z
      }
      """;

  private static CompileOptions layouts(Mode mode) {
    return USUAL.withRewrites(RewriteOptions.AUTO.withLayouts(mode));
  }

  @Test
  void parametersAreGatheredFromWhereTheyAreToWhereTheyBelong() {
    var plan = plan(BUCKET, USUAL);
    assertThat(ops(plan)).contains(GATHER).doesNotContain("aten::cat", "aten::reshape");
    assertThat(only(plan).action()).isEqualTo(Action.FOLDED);
    assertThat(only(plan).reason()).isEqualTo(Reason.FASTER);
    assertThat(plan.forRank(0).graph().outputValues())
        .extracting(value -> value.tensor().isContiguous())
        .containsExactly(true, true);
    long whole = 2L * 4 * 786432;
    assertThat(plan.total().bytes()).isEqualTo(whole);
    assertThat(plan(BUCKET, layouts(Mode.OFF)).total().bytes()).isEqualTo(2 * whole);
  }

  @Test
  void gradientsAreReducedWhereTheirProductsPutThem() {
    var plan = plan(GRADIENTS, USUAL);
    assertThat(ops(plan)).contains(SCATTER).doesNotContain("aten::cat");
    assertThat(only(plan).reason()).isEqualTo(Reason.FASTER);
    long gradients = 4L * 2 * 2048 * 512;
    assertThat(plan.total().bytes()).isLessThanOrEqualTo(gradients + gradients / 4);
    assertThat(plan(GRADIENTS, layouts(Mode.OFF)).total().bytes())
        .isGreaterThanOrEqualTo(2 * gradients);
  }

  @Test
  void plansSayWhichCopiesAreGone() {
    var plan = plan(BUCKET, USUAL);
    var json = PlanFile.toJson(plan);
    assertThat(PlanFile.toJson(PlanFile.read(new SourceFile("plan.json", json)))).isEqualTo(json);
    assertThat(TextRenderer.render(PlanReport.of(plan, List.of(View.COLLECTIVES))))
        .contains(
            "\n"
                + "g (1.5 MiB, test.graph:7:7) moves its slices to where they belong, without 3"
                + " copies");
  }

  /** NCCL takes several tensors, too, and no copy is better than one. */
  @Test
  void ncclGathersParametersBetweenHosts() {
    var plan = plan("[0, 4, 1, 5], [2, 6, 3, 7]", BUCKET, USUAL);
    assertThat(ops(plan)).contains(GATHER).doesNotContain("aten::cat");
    assertThat(plan.forRank(0).collectives().getFirst().variant()).isEqualTo(Variant.NCCL);
  }

  @ParameterizedTest
  @CsvSource({"all_gather, NCCL_CE", "all_gather, NCCL_SYMM", "g, PUSH"})
  void copiesStayForVariantsThatTakeOneTensor(String name, Variant variant) {
    assertStays(
        plan(BUCKET, USUAL.withVariants(ImmutableMap.of(name, variant))),
        Reason.FORCED_VARIANT,
        GATHER,
        SCATTER);
  }

  @ParameterizedTest
  @CsvSource({"NCCL", "PUSH", "ONE_SHOT", "COPY_ENGINE"})
  void otherVariantsMayBeNamed(Variant variant) {
    var plan = plan(BUCKET, USUAL.withVariants(ImmutableMap.of("all_gather", variant)));
    assertThat(ops(plan)).contains(GATHER);
    assertThat(plan.forRank(0).collectives().getFirst().variant()).isEqualTo(variant);
  }

  @Test
  void oneCollectiveTakesSoManyTensors() {
    int parts = 65;
    var text =
        """
        graph many(x: bf16[%1$s]) {
          g = _c10d_functional::all_gather_into_tensor(x, 4, "g4")
          r = aten::view(g, [4, %1$s])
          %2$s = aten::split.Tensor(r, 16, 1)
          %3$s
          return %4$s
        }
        """
            .formatted(
                16 * parts,
                names("s", parts),
                IntStream.range(0, parts)
                    .mapToObj(i -> "c%s = aten::contiguous(s%s)".formatted(i, i))
                    .collect(Collectors.joining("\n  ")),
                names("c", parts));
    var plan = plan(text, layouts(Mode.ON));
    assertThat(only(plan).reason()).isEqualTo(Reason.SIZE);
    assertThat(ops(plan)).doesNotContain(GATHER);
  }

  private static String names(String prefix, int count) {
    return IntStream.range(0, count).mapToObj(i -> prefix + i).collect(Collectors.joining(", "));
  }

  /** Another reader of the packed result needs it as it is. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "return v, w|return v, w, g",
        "return v, w|'n = aten::exp(t)\n  return v, w, n'",
        "r = aten|'n = aten::mul_.Scalar(g, 2)\n  r = aten'",
      })
  void copiesStayWhereSomethingElseNeedsThem(String from, String to) {
    assertThat(BUCKET).contains(from);
    var text = BUCKET.replace(from, to);
    var plan = plan(text, layouts(Mode.ON));
    assertThat(plan.rewrites()).noneMatch(Rewrite::made);
    assertThat(ops(plan)).doesNotContain(GATHER);
  }

  /** A tensor that is also packed for something else is gathered from there. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "return v, w|return v, w, f",
        "g = _c10d|'m = aten::mul_.Scalar(a, 2)\n  g = _c10d'",
      })
  void packedTensorsStayWhereTheyAreNeeded(String from, String to) {
    var plan = plan(BUCKET.replace(from, to), USUAL);
    assertThat(only(plan).detail()).startsWith("2 copies");
    assertThat(ops(plan)).contains("aten::cat", GATHER);
  }

  /** A part that nothing reads need not be gathered. */
  @Test
  void whatNothingReadsIsNotGathered() {
    var plan = plan(BUCKET.replace("return v, w", "return v"), USUAL);
    assertThat(plan.forRank(0).collectives().getFirst().operands()).hasSize(1);
    assertThat(ops(plan)).doesNotContain("aten::cat", "aten::reshape");
  }

  /** Ranks write into each other's tensors, so all of them have to have the same. */
  @Test
  void copiesStayWhereRanksWantOtherParts() {
    var text =
        BUCKET.replace(") {", ") ranks [0, 1] {")
            + BUCKET
                .replace(") {", ") ranks [2, 3] {")
                .replace("w = aten::reshape(t, [1024, 1024])", "w = aten::exp(t)");
    var plan = plan(text, USUAL);
    assertThat(plan.rewrites()).isEmpty();
    assertThat(ops(plan)).contains("aten::cat");
  }

  /** The parts are as large, but not the same. */
  @Test
  void copiesStayWhereRanksReadOtherParts() {
    var equal = BUCKET.replace("256, 1024", "512, 1024").replace("262144", "524288");
    var text =
        equal
            .replace("786432", "1048576")
            .replace("w = aten::reshape(t, [1024", "w = aten::reshape(t, [2048");
    var first = text.replace(") {", ") ranks [0, 1] {").replace("return v, w", "return v");
    var second = text.replace(") {", ") ranks [2, 3] {").replace("return v, w", "return w");
    assertThat(ops(plan(first + second, layouts(Mode.ON)))).contains("aten::cat");
    assertThat(ops(plan(first + first.replace("0, 1", "2, 3"), layouts(Mode.ON)))).contains(GATHER);
  }
}
