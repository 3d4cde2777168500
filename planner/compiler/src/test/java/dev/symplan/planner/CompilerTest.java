package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.ArgDecision.Reason;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class CompilerTest {
  private static final String TP =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph g(x: f32[64, 128], w: f32[128, 256]) {
        y = aten::mm(x, w)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  private static final String GATHER =
      """
      graph version 1

      group dp = [0, 1, 2, 3]

      graph g(w: f32[128, 256], x: f32[64, 512]) {
        g1 = _c10d_functional::all_gather_into_tensor(w, 4, "dp")
        full = _c10d_functional::wait_tensor(g1)
        o = aten::mm(x, full)
        return o
      }
      """;

  private static Plan compile(String text, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("g.graph", text)));
  }

  private static CompileOptions forced(String selector, Variant variant) {
    return CompileOptions.DEFAULT.withVariants(ImmutableMap.of(selector, variant));
  }

  private static CollectivePlan only(Plan plan) {
    return plan.rankPlans().getFirst().collectives().getFirst();
  }

  private static List<String> graphs(String text) {
    var program = GraphParser.parse(new SourceFile("g.graph", text));
    var compiler = Compiler.forTarget(Target.H200_X4).with(CompileOptions.DEFAULT.withRanks(2));
    return compiler.graphs(program, compiler.compile(program)).stream()
        .map(GraphPrinter::print)
        .toList();
  }

  /** No pass has changed what a run is compared with. */
  @Test
  void graphsAreThoseOfTheProgram() {
    assertThat(
            graphs(
                """
                graph version 1

                graph g(q: f32[1, 2, 8, 16]) {
                  unread = aten::neg(q)
                  m = aten::ones([8, 8], dtype=torch.bool)
                  o = aten::scaled_dot_product_attention(q, q, q, m)
                  return o
                }
                """))
        .hasSize(2)
        .allSatisfy(graph -> assertThat(graph).contains("unread", "attention(q, q, q, m)"));
  }

  /** The reference of runs has no definition of its own of such ops. */
  @Test
  void graphsHaveNoOpsThatOthersDefine() {
    assertThat(
            graphs(
                """
                graph version 1

                group tp = [0, 1]

                graph g(x: f32[4, 8], w: f32[8, 4]) {
                  unread = aten::neg(x)
                  a: f32[8, 8], y: f32[8, 4] = symm_mem::fused_all_gather_matmul(x, [w], 0, 'tp')
                  return y
                }
                """))
        .allSatisfy(
            graph ->
                assertThat(graph)
                    .contains("all_gather_into_tensor", "aten::mm")
                    .doesNotContain("symm_mem"));
  }

  @Test
  void namesTheInputThatIsSymmetricOnSomeRanksOnly() {
    var text =
        """
        graph version 1

        group tp = [0, 1]

        graph g(x: f32[8, 64]) ranks [0] {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          o = _c10d_functional::wait_tensor(r)
          return o
        }

        graph g(x: f32[8, 64], b: f32[16] @symm) ranks [1] {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          o = _c10d_functional::wait_tensor(r)
          s = aten::relu(b)
          return o, s
        }
        """;
    assertThatThrownBy(() -> compile(text, forced("all_reduce", Variant.ONE_SHOT_PUSH)))
        .hasMessageContaining("g.graph:11:24: error[ranks-disagree]: 'b' is placed in symmetric");
  }

  @Test
  void updatedCopiesTakeThePlaceOfWhatNothingElseReads() {
    var text =
        """
        graph version 1

        graph g(x: f32[64, 64], i: i64[64, 64], y: f32[64, 64]) {
          a = aten::mm(x, x)
          v = aten::permute(a, [0, 1])
          b = aten::scatter_add(a, 0, i, %s)
          return b
        }
        """;
    var options = CompileOptions.DEFAULT.withRanks(4);
    assertThat(compile(text.formatted("y"), options).total().bytes()).isEqualTo(64 * 64 * 4);
    assertThat(compile(text.formatted("v"), options).total().bytes()).isEqualTo(2 * 64 * 64 * 4);
    assertThat(compile(text.formatted("a"), options).total().bytes()).isEqualTo(2 * 64 * 64 * 4);
  }

  @Test
  void elementwiseResultsTakeThePlacesOfSymmetricOperands() {
    var text =
        """
        graph version 1

        group dp = [0, 1, 2, 3]

        graph g(w: f32[128, 256]) {
          a = aten::relu(w)
          b = _c10d_functional::all_gather_into_tensor(a, 4, "dp")
          c = aten::exp(b)
          return c
        }
        """;
    var plan = compile(text, forced("all_gather", Variant.ONE_SHOT));
    var rank = plan.rankPlans().getFirst();
    var values = rank.graph().values();
    assertThat(rank.placement(values.get(3))).isEqualTo(rank.placement(values.get(2)));
    assertThat(plan.total().bytes()).isEqualTo((128 + 512) * 256 * 4);
    assertThat(plan.total().bound()).isEqualTo(plan.total().bytes());
  }

  @Test
  void letsTheProducerWriteIntoSymmetricMemory() {
    var plan = compile(TP, forced("all_reduce", Variant.TWO_SHOT));
    var collective = only(plan);
    assertThat(collective.inPlace()).isTrue();
    assertThat(collective.args())
        .extracting(ArgDecision::realization)
        .containsOnly(Realization.ZERO_COPY);
    assertThat(collective.args().getFirst().reason()).isEqualTo(Reason.PRODUCER_WRITES);
    assertThat(plan.symmetric().bytes()).isEqualTo(64 * 256 * 4);
  }

  @Test
  void plansAnInputThatACollectiveUsesUnlessTheCallerKeepsIt() {
    var planned = compile(GATHER, forced("g1", Variant.ONE_SHOT));
    assertThat(only(planned).args().getFirst().reason()).isEqualTo(Reason.PLANNED_INPUT);
    assertThat(planned.rankPlans().getFirst().graph().ops()).hasSize(3);

    var external = compile(GATHER, forced("g1", Variant.ONE_SHOT).withInputs(MemorySpace.EXTERNAL));
    assertThat(only(external).args().getFirst().realization()).isEqualTo(Realization.STAGED);
    assertThat(only(external).args().getFirst().reason()).isEqualTo(Reason.EXTERNAL_INPUT);
    assertThat(external.rankPlans().getFirst().graph().ops())
        .extracting(op -> op.def().name().toString())
        .contains("symplan::stage");
  }

  @Test
  void stagesOnlyWhereThatIsCheaper() {
    // With the input outside, a variant that reads it where it is saves the copy.
    var plan = compile(GATHER, CompileOptions.DEFAULT.withInputs(MemorySpace.EXTERNAL));
    assertThat(only(plan).variant()).isEqualTo(Variant.PUSH);
    assertThat(only(plan).args().getFirst().realization()).isEqualTo(Realization.NOT_NEEDED);
    var verdict =
        only(plan).verdicts().stream()
            .filter(v -> v.variant() == Variant.ONE_SHOT)
            .findFirst()
            .orElseThrow();
    assertThat(verdict.stagingMicros()).isPositive();
  }

  @Test
  void copiesOutWhereTheCallerWantsASymmetricResult() {
    var options = forced("all_reduce", Variant.TWO_SHOT).withOutputs(MemorySpace.EXTERNAL);
    var plan = compile(TP, options);
    assertThat(only(plan).args().get(1).reason()).isEqualTo(Reason.EXTERNAL_OUTPUT);
    var output = plan.rankPlans().getFirst().graph().outputs().getFirst();
    output
        .operands()
        .forEach(
            value ->
                assertThat(plan.rankPlans().getFirst().buffer(value).arena())
                    .isEqualTo(ArenaKind.EXTERNAL_OUTPUT));
  }

  @Test
  void rejectsWithReasons() {
    var verdicts = only(compile(TP, CompileOptions.DEFAULT)).verdicts();
    assertThat(verdicts)
        .filteredOn(v -> v.variant() == Variant.MULTIMEM)
        .singleElement()
        .satisfies(v -> assertThat(v.reason()).isEqualTo(Verdict.Reason.NO_MULTICAST));
    assertThat(verdicts).filteredOn(Verdict::chosen).hasSize(1);
  }

  @Test
  void saysWhatIsWrongWithOptions() {
    assertThatThrownBy(() -> compile(TP, forced("all_reduce", Variant.MULTIMEM)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("cannot run as multimem: the target has no multicast")
        .hasMessageContaining("eligible: one_shot, one_shot_push, two_shot, two_shot_push");
    assertThatThrownBy(() -> compile(TP, forced("nothing", Variant.NCCL)))
        .hasMessageContaining("no collective has the name or kind 'nothing'");
    assertThatThrownBy(() -> compile(TP, CompileOptions.DEFAULT.withRanks(2)))
        .hasMessageContaining("names rank 3, but the number of ranks is 2");
    assertThatThrownBy(() -> compile(TP, CompileOptions.DEFAULT.withRanks(5)))
        .hasMessageContaining("rank 4 runs 'r' but is not in group 'tp'");
    assertThatThrownBy(
            () ->
                compile(
                    TP,
                    CompileOptions.DEFAULT.withSpaces(ImmutableMap.of("q", MemorySpace.EXTERNAL))))
        .hasMessageContaining("'q' is neither an input nor an output");
  }

  @Test
  void planFilesComeBackAsTheyWere() {
    var plan = compile(TP, CompileOptions.DEFAULT);
    var json = PlanFile.toJson(plan);
    var again = PlanFile.read(new SourceFile("plan.json", json));
    assertThat(PlanFile.toJson(again)).isEqualTo(json);
    assertThat(again.digest()).isEqualTo(plan.digest());
  }

  @Test
  void refusesPlansThatWereChanged() {
    var json = PlanFile.toJson(compile(TP, forced("all_reduce", Variant.TWO_SHOT)));
    for (var change :
        new String[][] {
          {"\"offset\" : 0", "\"offset\" : 128"},
          {"\"variant\" : \"two_shot\"", "\"variant\" : \"one_shot\""},
          {"\"in_place\" : true", "\"in_place\" : false"},
          {"\"op 0\"", "\"op 1\""},
          {"\"version\" : 1", "\"version\" : 2"},
          {"\"gpus\" : 4", "\"gpus\" : 2"},
        }) {
      var changed = json.replace(change[0], change[1]);
      assertThat(changed).as(change[0]).isNotEqualTo(json);
      assertThatThrownBy(() -> PlanFile.read(new SourceFile("plan.json", changed)))
          .as(change[0])
          .isInstanceOf(CompileException.class)
          .hasMessageContaining("bad-plan");
    }
    assertThatThrownBy(() -> PlanFile.read(new SourceFile("plan.json", json.substring(0, 500))))
        .hasMessageContaining("this is not JSON");
  }

  @Test
  void namesTheFieldOfAPlanThatIsWrong() {
    var json = PlanFile.toJson(compile(TP, forced("all_reduce", Variant.TWO_SHOT)));
    for (var change :
        new String[][] {
          {"\"version\" : 1", "\"version\" : \"1\"", "version: must be an integer"},
          {"\"digest\" : ", "\"x\" : ", "digest: is missing"},
          {"\"op 0\"", "\"op\"", "rank_plans[0].steps[0]: a step is"},
          {"\"op 0\"", "7", "rank_plans[0].steps[0]: must be a string"},
          {
            "\"in_place\" : true",
            "\"in_place\" : 1",
            "rank_plans[0].collectives[0].in_place: must be true or false"
          },
          {
            "\"variant\" : \"two_shot\"",
            "\"variant\" : \"none\"",
            "rank_plans[0].collectives[0].variant: unknown value 'none'"
          },
        }) {
      var changed = json.replaceFirst(Pattern.quote(change[0]), change[1]);
      assertThatThrownBy(() -> PlanFile.read(new SourceFile("plan.json", changed)))
          .hasMessageStartingWith("plan.json: error[bad-plan]: " + change[2]);
    }
  }

  @Test
  void plansEverySampleCaseForEveryTarget() {
    var cases = Path.of(System.getProperty("symplan.root", "..")).resolve("samples/cases");
    for (var target : Target.names()) {
      for (var name :
          new String[] {
            "allreduce_relu", "tp_mlp_f32", "tp_mlp_bf16", "sp_mlp", "fsdp_mlp_train_fwd"
          }) {
        var plan =
            Compiler.forTarget(Target.ofName(target).orElseThrow()).compile(cases.resolve(name));
        assertThat(plan.worldSize()).isEqualTo(4);
      }
    }
  }
}
