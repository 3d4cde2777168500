package dev.symplan.planner.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.planner.report.render.CsvRenderer;
import dev.symplan.planner.report.render.DotRenderer;
import dev.symplan.planner.report.render.Format;
import dev.symplan.planner.report.render.JsonRenderer;
import dev.symplan.planner.report.render.ModelExplorerRenderer;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.planner.report.render.TraceRenderer;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@Isolated("changes the default locale")
class PlanReportTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");
  private static final List<String> SAMPLED = List.of("tp_mlp", "fsdp_layer", "data_parallel");

  private static final String RANKS_DIFFER =
      """
      graph version 1

      group g = [0, 1]

      graph f(x: f32[64, 64]) ranks [0] {
        a = aten::relu(x)
        r = _c10d_functional::all_reduce(a, "sum", "g")
        return r
      }

      graph f(x: f32[64, 64]) ranks [1] {
        a = aten::exp(x)
        b = aten::mm(a, x)
        r = _c10d_functional::all_reduce(b, "sum", "g")
        return r
      }
      """;

  private static Plan sample(String name) {
    return Compiler.forTarget(Target.H200_X4).compile(SAMPLES.resolve(name + ".graph"));
  }

  private static Plan compile(String text, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("test.graph", text)));
  }

  private static String render(Format format, PlanReport report) {
    return switch (format) {
      case TEXT -> TextRenderer.render(report);
      case JSON -> JsonRenderer.render(report);
      case HTML -> HtmlRenderer.data(report);
      case CSV -> CsvRenderer.render(report);
      case DOT -> DotRenderer.render(report);
      case MODEL_EXPLORER -> ModelExplorerRenderer.render(report);
      case MODEL_EXPLORER_DATA -> ModelExplorerRenderer.nodeData(report);
      case PERFETTO -> TraceRenderer.render(report);
    };
  }

  @ParameterizedTest
  @MethodSource("goldens")
  void looksAsItShould(String sample, Format format) {
    var views = format == Format.TEXT ? List.of(View.values()) : format.views();
    var report = PlanReport.of(sample(sample), views);
    Golden.check("report/%s.%s".formatted(sample, format.text()), render(format, report));
  }

  static Stream<Arguments> goldens() {
    return SAMPLED.stream()
        .flatMap(sample -> Stream.of(Format.values()).map(f -> Arguments.of(sample, f)));
  }

  /** A step that may make ranks drift apart is not advised, however fast. */
  @Test
  void advisesNothingThatTheRanksBitsPayFor() {
    var curve =
        """
        [{"ranks": 4, "measured": false, "source": "made up", "floor_us": 0, "per_rank_us": 0,
          "protocols": [{"latency_us": 0.001, "gbps": 1000000}]}]
        """;
    var target =
        TargetFile.read(
            new SourceFile(
                "fast.json",
                """
                {"format": "symplan-target", "version": 1, "name": "fast", "base": "h200x8",
                 "curves": {"all_reduce": {"multimem": %1$s, "multimem_one_shot": %1$s}}}
                """
                    .formatted(curve)));
    var plan = Compiler.forTarget(target).compile(SAMPLES.resolve("tp_mlp.graph"));
    assertThat(render(Format.JSON, PlanReport.of(plan, List.of(View.COLLECTIVES))))
        .contains("multimem alone would take")
        .doesNotContain("multimem_one_shot alone would take");
  }

  @ParameterizedTest
  @EnumSource(Format.class)
  void isTheSameInEveryLocale(Format format) {
    var report = PlanReport.of(sample("fsdp_layer"), format.views());
    var before = Locale.getDefault();
    try {
      Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
      var there = render(format, PlanReport.of(sample("fsdp_layer"), format.views()));
      Locale.setDefault(Locale.ROOT);
      assertThat(there).isEqualTo(render(format, report));
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void graphsOfDifferentRanksHaveSectionsOfTheirOwn() {
    var plan = compile(RANKS_DIFFER, CompileOptions.DEFAULT);
    var report = PlanReport.of(plan, List.of(View.SUMMARY, View.VALUES, View.MEMORY));
    assertThat(report.sections(View.VALUES))
        .extracting(Section::ranks)
        .containsExactly(ImmutableList.of(0), ImmutableList.of(1));
    Golden.check("report/ranks.txt", TextRenderer.render(report));
  }

  @Test
  void mapsFitTheTerminal() {
    var report = PlanReport.of(sample("fsdp_layer"), List.of(View.MEMORY));
    var narrow = TextRenderer.render(report, 40, false);
    Golden.check("report/narrow.txt", narrow);
    assertThat(narrow.lines().filter(line -> line.contains("|"))).allMatch(l -> l.length() <= 40);
    var coloured = TextRenderer.render(report, 60, true);
    Golden.check("report/coloured.txt", coloured);
    assertThat(coloured.replaceAll("\u001b\\[[0-9;]*m", ""))
        .isEqualTo(TextRenderer.render(report, 60, false));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "tp_mlp",
        "fsdp_layer",
        "data_parallel",
        "sp_block",
        "moe",
        "two_groups",
        "collectives"
      })
  void predictsWhatThePlannerPredicted(String sample) {
    var plan = sample(sample);
    double total =
        plan.rankPlans().stream()
            .mapToDouble(rankPlan -> PredictedTimes.of(plan, rankPlan).total())
            .max()
            .orElseThrow();
    assertThat(total).isCloseTo(plan.reordering().chosen().micros(), within(1e-6));
  }

  @ParameterizedTest
  @ValueSource(strings = {"tp_mlp", "fsdp_layer", "data_parallel", "sp_block", "moe", "two_groups"})
  void plannedGraphsCanBeReadAndPlannedAgain(String sample) {
    var plan = sample(sample);
    var section = PlanReport.of(plan, List.of(View.GRAPH)).sections().getFirst();
    var text = String.join("\n", section.lines()) + "\n";
    var program = GraphParser.parse(new SourceFile("planned.graph", text));
    assertThat(GraphPrinter.print(program)).isEqualTo(text);
    var again =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(plan.worldSize()))
            .compile(program);
    assertThat(again.rankPlans().getFirst().collectives())
        .extracting(collective -> collective.variant())
        .isEqualTo(
            plan.rankPlans().getFirst().collectives().stream().map(c -> c.variant()).toList());
  }

  @Test
  void thresholdsAreWhereTheCostModelsCurvesCross() {
    int checked = 0;
    for (var sample : List.of("tp_mlp", "fsdp_layer", "collectives", "data_parallel")) {
      var plan = sample(sample);
      var rows = PlanReport.of(plan, List.of(View.COLLECTIVES)).sections().getFirst().rows();
      for (int k = 0; k < rows.size(); k++) {
        var collective = plan.rankPlans().getFirst().collectives().get(k);
        int ranks = Math.toIntExact(rows.get(k).whole("ranks"));
        for (var row : rows.get(k).rows()) {
          var words = List.of(row.text("threshold").split(" "));
          if (words.size() == 5 && words.get(1).equals("up")) {
            checked++;
            var variant = Variant.ofText(row.title()).orElseThrow();
            double bytes = bytes(words.get(3), words.get(4));
            assertThat(isFaster(plan, collective, variant, ranks, bytes * 0.95)).isTrue();
            assertThat(isFaster(plan, collective, variant, ranks, bytes * 1.05)).isFalse();
          }
        }
      }
    }
    assertThat(checked).isPositive();
  }

  private static double bytes(String number, String unit) {
    return Double.parseDouble(number)
        * switch (unit) {
          case "KiB" -> 1 << 10;
          case "MiB" -> 1 << 20;
          default -> 1;
        };
  }

  private static boolean isFaster(
      Plan plan, CollectivePlan collective, Variant variant, int ranks, double bytes) {
    var costs = new CostModel(plan.target());
    return costs.transferMicros(collective.kind(), variant, Math.round(bytes), ranks)
        < costs.transferMicros(collective.kind(), collective.variant(), Math.round(bytes), ranks);
  }

  @Test
  void explainsWhatWouldSaveACopy() {
    var text =
        """
        graph version 1

        group tp = [0, 1, 2, 3]

        graph g(w: f32[128, 256]) {
          r = _c10d_functional::all_reduce(w, "sum", "tp")
          return r
        }
        """;
    var options =
        CompileOptions.DEFAULT
            .withInputs(MemorySpace.EXTERNAL)
            .withVariants(ImmutableMap.of("r", Variant.ONE_SHOT));
    assertThat(
            PlanExplainer.explain(compile(text, options), "r").map(TextRenderer::row).orElseThrow())
        .containsPattern(
            "better +an input w in the arena \\(--place w=symm, or --donate w\\) would save a copy"
                + " of 128.0 KiB");
    assertThat(
            PlanExplainer.explain(compile(text, options), "r").map(TextRenderer::row).orElseThrow())
        .containsPattern("multimem +cannot: the target has no multicast");
    assertThat(PlanExplainer.explain(compile(text, options), "nobody").map(TextRenderer::row))
        .isEmpty();
  }
}
