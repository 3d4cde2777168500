package dev.symplan.planner.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

class PlanDiffTest {
  private static final String GRAPH =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph g(x: f32[512, 512], w: f32[512, 512]) {
        y = aten::mm(x, w)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        a = aten::relu(r)
        b = aten::mm(a, w)
        return b
      }
      """;

  private static Plan plan(String text, Target target, CompileOptions options) {
    return Compiler.forTarget(target)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("g.graph", text)));
  }

  private static Plan plan(Target target, CompileOptions options) {
    return plan(GRAPH, target, options);
  }

  private static Plan plan(CompileOptions options) {
    return plan(Target.H200_X4, options);
  }

  private static CompileOptions forced(Variant variant) {
    return CompileOptions.DEFAULT.withVariants(ImmutableMap.of("r", variant));
  }

  @Test
  void aPlanDoesNotDifferFromItself() {
    assertThat(PlanDiff.of(plan(CompileOptions.DEFAULT), plan(CompileOptions.DEFAULT))).isEmpty();
  }

  @Test
  void tellsWhichVariantBecameAnotherAndWhy() {
    var one = plan(forced(Variant.ONE_SHOT));
    var two = plan(forced(Variant.NCCL));
    assertThat(TextRenderer.rows(PlanDiff.of(one, two)))
        .containsPattern("collectives\n +r +one_shot → nccl: forced\n");
    var multimem = plan(Target.H100_X8, forced(Variant.MULTIMEM).withMulticast(true));
    var without = plan(CompileOptions.DEFAULT);
    assertThat(TextRenderer.rows(PlanDiff.of(multimem, without)))
        .contains("multimem cannot: the target has no multicast", "target  h100x8 → h200x4");
  }

  @Test
  void tellsWhatMovedAndWhatItCosts() {
    var symmetric = plan(forced(Variant.ONE_SHOT));
    var plain = plan(forced(Variant.NCCL));
    var text = TextRenderer.rows(PlanDiff.of(symmetric, plain));
    assertThat(text)
        .contains("y  symmetric, for peers, 1.0 MiB → local, 1.0 MiB")
        .containsPattern("predicted +[0-9.]+ µs → [0-9.]+ µs")
        .containsPattern("symmetric +1.0 MiB → 0 B, 1.0 MiB less");
    assertThat(TextRenderer.rows(PlanDiff.of(plain, symmetric)))
        .containsPattern("symmetric +0 B → 1.0 MiB, .*more");
  }

  @Test
  void adviceSavesWhatItSays() {
    var options = forced(Variant.ONE_SHOT);
    var text =
        GRAPH
            .replace("  a = aten::relu(r)\n  b = aten::mm(a, w)\n", "")
            .replace("return b", "return r");
    Function<CompileOptions, Plan> planner = changed -> plan(text, Target.H200_X4, changed);
    var plan = planner.apply(options);
    var advice = PeakAdvice.of(plan, options, planner);
    var rows = advice.getFirst().rows();
    assertThat(rows).isNotEmpty();
    for (var row : rows) {
      assertThat(row.whole("saved_bytes")).isPositive();
    }
    var inPlace =
        rows.stream()
            .filter(row -> row.text("flags").equals("--variant r=two_shot"))
            .findFirst()
            .orElseThrow();
    assertThat(inPlace.whole("saved_bytes"))
        .as("the result takes the operand's place")
        .isEqualTo(plan.total().bytes() - planner.apply(forced(Variant.TWO_SHOT)).total().bytes());
    assertThat(rows)
        .as("the most first")
        .isSortedAccordingTo(
            (a, b) -> Long.compare(b.whole("saved_bytes"), a.whole("saved_bytes")));
  }

  @Test
  void whatHelpsNobodyIsNotAdvised() {
    var rows =
        PeakAdvice.of(
            plan(CompileOptions.DEFAULT),
            CompileOptions.DEFAULT,
            options -> plan(CompileOptions.DEFAULT));
    assertThat(rows.getFirst().title()).startsWith("advice: none of ");
  }

  @Test
  void thePeakNamesWhatIsLiveAndWhy() {
    var plan = plan(forced(Variant.ONE_SHOT).withInputs(MemorySpace.SYMMETRIC));
    var report = PlanReport.of(plan, List.of(View.PEAK));
    var text = TextRenderer.render(report);
    assertThat(text)
        .startsWith("symmetric arena: 3.0 MiB of 3.0 MiB live at step 0, y = aten::mm\n")
        .containsPattern("\n  y +1.0 MiB +33.3 % +written here, last read by r in step 1 ")
        .containsPattern("\n  w +1.0 MiB +33.3 % +planned input, kept for the next run");
    var arena = report.sections().getFirst().rows().getFirst();
    long sum = arena.rows().stream().mapToLong(row -> row.whole("bytes")).sum();
    assertThat(sum).isEqualTo(arena.whole("live_bytes"));
  }
}
