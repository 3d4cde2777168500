package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Frontier;
import dev.symplan.planner.plan.OrderDecision.Figures;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.planner.verify.RandomPrograms;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Time and memory of plans that are made for time, for memory, or for both. */
class ObjectiveOptionsTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");
  private static final long SEED = 20_261_123;
  private static final int PROGRAMS = 300;

  /** Weights that are gathered ahead hide behind products, and take memory beside them. */
  private static final String GATHERED_AHEAD =
      """
      graph version 1

      group dp = [0, 1, 2, 3]

      graph gathered(
          x: bf16[8192, 2048], a: bf16[512, 2048], b: bf16[512, 2048], c: bf16[512, 2048]) {
        wa = _c10d_functional::all_gather_into_tensor(a, 4, "dp")
        ha = aten::mm(x, wa)
        wb = _c10d_functional::all_gather_into_tensor(b, 4, "dp")
        hb = aten::mm(ha, wb)
        wc = _c10d_functional::all_gather_into_tensor(c, 4, "dp")
        hc = aten::mm(hb, wc)
        s = aten::sum(hc)
        return s
      }
      """;

  /** Overlap gains next to nothing here. */
  private static final String LITTLE_TO_HIDE =
      """
      graph version 1

      group dp = [0, 1, 2, 3]

      graph little(x: f32[8192, 8192], y: f32[2048, 64]) {
        p = aten::mm(x, x)
        q = aten::mm(p, p)
        w = _c10d_functional::all_gather_into_tensor(y, 4, "dp")
        r = aten::mm(q, w)
        s = aten::sum(r)
        return s
      }
      """;

  /** The products beside the collective hide it; one after the other, they need less memory. */
  private static final String ORDERED_TO_HIDE =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph ordered(x: f32[4096, 4096], y: f32[4096, 4096]) {
        p = aten::mm(x, y)
        r = _c10d_functional::all_reduce(p, "sum", "tp")
        a = aten::mm(y, x)
        b = aten::mm(y, a)
        c = aten::mm(y, b)
        q = aten::sum(r)
        s = aten::sum(c)
        return q, s
      }
      """;

  /** The gradients' sums hide behind products, but hold gradients where most is live. */
  private static final String PEAK_IN_FLIGHT =
      """
      graph version 1

      group dp = [0, 1, 2, 3]

      graph peak(x: f32[4096, 4096], y: f32[4096, 4096], z: f32[4096, 8192]) {
        a = aten::mm(x, y)
        ra = _c10d_functional::reduce_scatter_tensor(a, "sum", 4, "dp")
        b = aten::mm(y, x)
        rb = _c10d_functional::reduce_scatter_tensor(b, "sum", 4, "dp")
        c = aten::mm(x, x)
        rc = _c10d_functional::reduce_scatter_tensor(c, "sum", 4, "dp")
        d = aten::mm(y, z)
        rd = _c10d_functional::reduce_scatter_tensor(d, "sum", 4, "dp")
        return ra, rb, rc, rd
      }
      """;

  private static Plan plan(String text, CompileOptions options) {
    return plan(GraphParser.parse(new SourceFile("test.graph", text)), options);
  }

  private static Plan plan(Program program, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }

  private static Plan plan(String text, Objective objective) {
    return plan(text, CompileOptions.DEFAULT.withObjective(objective));
  }

  private static long async(Plan plan) {
    return plan.forRank(0).collectives().stream().filter(CollectivePlan::isAsync).count();
  }

  @Test
  void frontiersLookAsTheyShould() {
    var text = new StringBuilder();
    for (var graph : List.of(GATHERED_AHEAD, LITTLE_TO_HIDE, ORDERED_TO_HIDE, PEAK_IN_FLIGHT)) {
      for (var objective : Objective.values()) {
        var report = PlanReport.of(plan(graph, objective), List.of(View.SUMMARY, View.SCHEDULE));
        text.append(TextRenderer.render(report)).append('\n');
      }
    }
    Golden.check("report/objectives.txt", text.toString());
  }

  @Test
  void aBalancedPlanTakesMoreMemoryForAGainThatIsWorthIt() {
    var plan = plan(GATHERED_AHEAD, Objective.BALANCED);
    var alone = plan.frontier().alone();
    assertThat(async(plan)).isPositive();
    assertThat(plan.total().bytes()).isGreaterThan(alone.peakBytes());
    assertThat(plan.frontier().balanced().micros())
        .isLessThan(alone.micros() * (1 - plan.frontier().minGain()));
    var memory = plan(GATHERED_AHEAD, Objective.MEMORY);
    assertThat(memory.total().bytes()).isEqualTo(alone.peakBytes());
  }

  @Test
  void aBalancedPlanTakesNoMoreMemoryForLess() {
    var plan = plan(LITTLE_TO_HIDE, Objective.BALANCED);
    assertThat(async(plan)).isZero();
    assertThat(plan.total().bytes()).isEqualTo(plan.frontier().alone().peakBytes());
    var fastest = plan(LITTLE_TO_HIDE, Objective.TIME);
    assertThat(async(fastest)).isOne();
    assertThat(fastest.total().bytes()).isGreaterThan(plan.total().bytes());
    assertThat(fastest.frontier().time().micros())
        .isLessThan(plan.frontier().alone().micros())
        .isGreaterThan(plan.frontier().alone().micros() * (1 - plan.frontier().minGain()));
  }

  /** The budget is that of balanced plans: one for memory takes any order that saves memory. */
  @Test
  void onlyAPlanForMemoryTakesAnOrderThatIsTooSlow() {
    var balanced = plan(ORDERED_TO_HIDE, Objective.BALANCED);
    var memory = plan(ORDERED_TO_HIDE, Objective.MEMORY);
    assertThat(memory.total().bytes()).isLessThan(balanced.total().bytes());
    assertThat(memory.frontier().memory().micros())
        .isGreaterThan(1.01 * balanced.frontier().balanced().micros());
    var kept =
        plan(
            ORDERED_TO_HIDE,
            CompileOptions.DEFAULT
                .withObjective(Objective.MEMORY)
                .withReorderBudget(OptionalDouble.empty()));
    assertThat(kept.total().bytes()).isEqualTo(balanced.total().bytes());
  }

  @Test
  void onlyTheCollectivesAtThePeakAreKeptApart() {
    var fastest = plan(PEAK_IN_FLIGHT, Objective.TIME);
    var balanced = plan(PEAK_IN_FLIGHT, Objective.BALANCED);
    assertThat(async(balanced)).isPositive().isLessThan(async(fastest));
    assertThat(balanced.total().bytes()).isLessThan(fastest.total().bytes());
  }

  /** A rewrite that the balanced plan does without may be what makes another plan the best. */
  @Test
  void aRewriteIsUndoneWhereThatIsBetter() {
    var input = SAMPLES.resolve("cases/fsdp_mlp_train_bwd");
    var compiler = Compiler.forTarget(Target.H200_X4);
    var balanced = compiler.compile(input);
    assertThat(balanced.forRank(0).collectives()).hasSize(1);
    var forMemory = CompileOptions.DEFAULT.withObjective(Objective.MEMORY);
    var memory = compiler.with(forMemory).compile(input);
    assertThat(memory.forRank(0).collectives()).hasSize(4);
    assertThat(memory.rewrites()).noneMatch(Rewrite::made).isNotEmpty();
    assertThat(memory.total().bytes()).isLessThan(balanced.total().bytes());
    var wanted = forMemory.withRewrites(RewriteOptions.AUTO.withBucket(Mode.ON));
    assertThat(compiler.with(wanted).compile(input).forRank(0).collectives()).hasSize(1);
  }

  /** The starts that have no join or read of theirs after them yet, before each start. */
  private static int mostAhead(Plan plan) {
    var rank = plan.forRank(0);
    int ahead = 0;
    int most = 0;
    for (var step : rank.steps()) {
      if (step instanceof Step.Start(int k) && rank.collectives().get(k).isAsync()) {
        most = Math.max(most, ++ahead);
      } else if (step instanceof Step.Join) {
        ahead--;
      }
    }
    return most;
  }

  @Test
  void prefetchLimitsHowManyCollectivesAreAhead() {
    var slow = GATHERED_AHEAD.replace("x: bf16[8192, 2048]", "x: bf16[1024, 2048]");
    var options = CompileOptions.DEFAULT.withObjective(Objective.TIME);
    int free = mostAhead(plan(slow, options));
    assertThat(free).isGreaterThan(1);
    for (int depth = 0; depth <= free; depth++) {
      var plan = plan(slow, options.withPrefetch(OptionalInt.of(depth)));
      assertThat(mostAhead(plan)).as("depth %s", depth).isLessThanOrEqualTo(depth);
    }
    assertThat(mostAhead(plan(slow, options.withPrefetch(OptionalInt.of(1))))).isOne();
    assertThatThrownBy(() -> CompileOptions.DEFAULT.withPrefetch(OptionalInt.of(-1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("prefetch must not be negative: OptionalInt[-1]");
  }

  /** Prices are of what can be hidden: without prefetching, nothing before a collective's place. */
  @Test
  void pricesKnowHowManyCollectivesAreAhead() {
    var options = CompileOptions.DEFAULT.withObjective(Objective.TIME);
    assertThat(pricedBesideCompute(plan(GATHERED_AHEAD, options))).isPositive();
    assertThat(pricedBesideCompute(plan(GATHERED_AHEAD, options.withPrefetch(OptionalInt.of(0)))))
        .isZero();
  }

  private static long pricedBesideCompute(Plan plan) {
    return plan.forRank(0).collectives().stream()
        .flatMap(collective -> collective.verdicts().stream())
        .filter(verdict -> verdict.detail().contains("beside compute"))
        .count();
  }

  @Test
  void planFilesKeepTheFrontier() {
    var plan = plan(GATHERED_AHEAD, Objective.MEMORY);
    var json = PlanFile.toJson(plan);
    assertThat(PlanFile.read(new SourceFile("plan.json", json)).frontier())
        .isEqualTo(plan.frontier());
    assertThatThrownBy(() -> read(json.replace("\"chosen\" : \"memory\"", "\"chosen\" : \"fun\"")))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("frontier.chosen");
    assertThatThrownBy(() -> read(json.replace("\"frontier\"", "\"limits\"")))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("frontier: is missing");
  }

  private static Plan read(String json) {
    return PlanFile.read(new SourceFile("plan.json", json));
  }

  @Test
  void frontiersThatContradictThemselvesAreRefused() {
    var fast = new Figures(200, 90);
    var small = new Figures(100, 100);
    assertThat(new Frontier(Objective.TIME, 0.03, small, fast, fast, small).of(Objective.MEMORY))
        .isEqualTo(small);
    assertThatThrownBy(() -> new Frontier(Objective.TIME, 0.2, small, fast, fast, small))
        .hasMessage(
            "the balanced plan takes more memory than the graph by itself, and gains too little");
    assertThatThrownBy(() -> new Frontier(Objective.TIME, 0.03, small, small, fast, small))
        .hasMessage("another plan is faster than the fastest");
    assertThatThrownBy(() -> new Frontier(Objective.TIME, 0.03, small, fast, small, fast))
        .hasMessage("another plan has a lower peak than the lowest");
  }

  /** All three plans say the same of each other, and what they say is what each takes. */
  @Test
  void plansOfRandomProgramsKeepTheirPromises() {
    int refused = 0;
    int apart = 0;
    var random = new Random(SEED);
    for (int i = 0; i < PROGRAMS; i++) {
      long seed = SEED + i;
      var program = RandomPrograms.program(new Random(seed));
      var options =
          CompileOptions.DEFAULT
              .withRanks(4)
              .withOverlap(random.nextInt(8) > 0)
              .withReorderBudget(
                  random.nextInt(4) > 0
                      ? OptionalDouble.of(random.nextInt(3) * 0.1)
                      : OptionalDouble.empty());
      Map<Objective, Plan> plans = new EnumMap<>(Objective.class);
      try {
        for (var objective : Objective.values()) {
          plans.put(objective, plan(program, options.withObjective(objective)));
        }
      } catch (CompileException e) {
        refused++;
        continue;
      }
      var frontier = plans.get(Objective.BALANCED).frontier();
      plans.forEach(
          (objective, plan) -> {
            var own = plan.frontier();
            assertThat(own.chosen()).as("seed %s", seed).isEqualTo(objective);
            assertThat(List.of(own.alone(), own.time(), own.balanced(), own.memory()))
                .as("seed %s, %s", seed, objective)
                .containsExactly(
                    frontier.alone(), frontier.time(), frontier.balanced(), frontier.memory());
            assertThat(plan.reordering().chosen())
                .as("seed %s, %s", seed, objective)
                .isEqualTo(own.of(objective));
            assertThat(plan.total().bound())
                .as("seed %s, %s", seed, objective)
                .isEqualTo(own.of(objective).peakBytes());
          });
      apart += frontier.time().equals(frontier.memory()) ? 0 : 1;
    }
    assertThat(refused).isLessThan(PROGRAMS / 10);
    assertThat(apart).isGreaterThan(PROGRAMS / 20);
  }
}
