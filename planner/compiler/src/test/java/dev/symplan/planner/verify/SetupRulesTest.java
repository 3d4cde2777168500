package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.VerifierFixtures.compile;
import static dev.symplan.planner.verify.VerifierFixtures.first;
import static dev.symplan.planner.verify.VerifierFixtures.rules;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Collections;
import org.junit.jupiter.api.Test;

/** What runs once, and errors of plans that have the wrong things there. */
class SetupRulesTest {

  /** Steps: p, s, the end of the setup, a, b, c, d. */
  private static final String TABLE =
      """
      graph table(x: f32[64, 64], w: f32[64, 64]) {
        p = aten::full([64, 64], 0.5)
        s = aten::mm(p, p)
        a = aten::mm(x, w)
        b = aten::mm(a, s)
        c = aten::mm(b, w)
        d = aten::mm(c, w)
        return d
      }
      """;

  /** Steps: v, the end of the setup, a, b. */
  private static final String WEIGHT =
      """
      graph weight(x: f32[64, 64], w: f32[64, 64]) {
        v = aten::neg(w)
        a = aten::mm(x, v)
        b = aten::mm(a, v)
        return b
      }
      """;

  private static Plan table() {
    return compile(TABLE);
  }

  private static Plan weight() {
    return compile(WEIGHT, CompileOptions.DEFAULT.withFoldWeights(ImmutableSet.of("w")));
  }

  private static Op weights(Op end, String... names) {
    var items = ImmutableList.<Arg>builder();
    for (var name : names) {
      items.add(new Arg.Str(name));
    }
    return new Op(
        end.def(),
        ImmutableList.of(new Arg.Seq(items.build())),
        end.results(),
        end.span(),
        end.notes());
  }

  @Test
  void plansAreSafe() {
    var plan = table();
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    assertThat(plan.rankPlans().getFirst().steps().get(2)).isEqualTo(new Step.Compute(2));
    assertThat(plan.rankPlans().getFirst().setupEnd()).isEqualTo(2);
    assertThat(PlanVerifier.verify(weight())).isEmpty();
  }

  /** It is after the last use in the run, but the next run would find it. */
  @Test
  void somethingElseInTheirMemory() {
    var plan = PlanEdits.of(table()).over("c", "s").restated();
    assertThat(first(plan, Rule.OVERWRITTEN).message()).contains("finds s at").contains("wrote c");
  }

  /** The caller fills it again before each run, even if nothing reads it. */
  @Test
  void somethingThatTheCallerGivesAwayInTheirMemory() {
    var given = TABLE.replace("w: f32[64, 64])", "w: f32[64, 64], u: f32[64, 64] @donated)");
    var plan = compile(given);
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    assertThat(first(PlanEdits.of(plan).over("u", "s").plan(), Rule.OVERWRITTEN).message())
        .contains("reads u at")
        .contains("wrote s");
  }

  @Test
  void lifeThatEndsWithTheRun() {
    var plan = PlanEdits.of(table()).buffer("s", b -> PlanEdits.lives(b, 1, 4)).plan();
    assertThat(first(plan, Rule.LIFETIME).message())
        .contains("the buffer s lives from step 1 to 4");
  }

  @Test
  void whatTheSetupAloneNeedsMayEnd() {
    assertThat(table().rankPlans().getFirst().buffers())
        .filteredOn(b -> b.name().equals("p"))
        .allSatisfy(b -> assertThat(b.last()).isEqualTo(1));
  }

  @Test
  void stepsOnTheOtherSide() {
    var plan = PlanEdits.of(table()).steps(steps -> Collections.swap(steps, 2, 3)).restated();
    assertThat(first(plan, Rule.SETUP).message())
        .isEqualTo(
            "step 2 (aten::mm → a) does not belong to the setup, which runs once, but stands before"
                + " its end");
    var late = PlanEdits.of(table()).steps(steps -> Collections.swap(steps, 1, 2)).restated();
    assertThat(first(late, Rule.SETUP).message())
        .isEqualTo(
            "step 2 (aten::mm → s) belongs to the setup, which runs once, but stands after its"
                + " end");
  }

  @Test
  void inputsThatMayChange() {
    var plan = PlanEdits.of(weight()).op(1, SetupRulesTest::weights).plan();
    assertThat(first(plan, Rule.SETUP).message())
        .isEqualTo("aten::neg → v runs once, but reads an input that may change: w");
    var other = PlanEdits.of(weight()).op(1, end -> weights(end, "x")).plan();
    assertThat(rules(other)).contains(Rule.SETUP);
  }

  @Test
  void somethingRandom() {
    var random = BuiltinOps.registry().get("aten::rand");
    var plan =
        PlanEdits.of(table())
            .op(
                0,
                op -> {
                  var args = ImmutableList.<Arg>builder().add(op.args().getFirst());
                  random.schema().params().stream()
                      .skip(1)
                      .forEach(param -> args.add(param.defaultValue().orElseThrow()));
                  return new Op(random, args.build(), op.results(), op.span(), op.notes());
                })
            .plan();
    assertThat(first(plan, Rule.SETUP).message())
        .isEqualTo("aten::rand → p runs once, but may do something else each time");
  }

  @Test
  void somethingDropped() {
    var dropout = BuiltinOps.registry().get("aten::dropout");
    for (boolean train : new boolean[] {false, true}) {
      var plan =
          PlanEdits.of(weight())
              .op(
                  0,
                  op ->
                      new Op(
                          dropout,
                          ImmutableList.of(
                              op.args().getFirst(), new Arg.Float(0.5), new Arg.Bool(train)),
                          op.results(),
                          op.span(),
                          op.notes()))
              .plan();
      assertThat(rules(plan).contains(Rule.SETUP)).isEqualTo(train);
    }
  }

  @Test
  void memoryOfTheCallers() {
    var plan =
        PlanEdits.of(table())
            .buffer("s", b -> PlanEdits.at(b, ArenaKind.EXTERNAL_OUTPUT, false, 0))
            .plan();
    assertThat(first(plan, Rule.SETUP).message())
        .endsWith("s to each run in memory of the caller's");
  }
}
