package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Tensors in the host's memory, and the copies that bring them there and back. */
class HostCopyRulesTest {
  /** r waits for its gradient, and is a sum that must not be computed again. */
  private static final String TEXT =
      """
      graph version 1
      group g = [0, 1]
      graph step(x: f32[64, 64], w: f32[64, 64]) {
        p = aten::mm(x, w)
        r = _c10d_functional::all_reduce(p, "sum", "g")
        a = aten::mm(r, w)
        b = aten::mm(a, w)
        c = aten::mm(b, a)
        d = aten::mm(c, w)
        y = aten::mul.Tensor(d, r)
        return y
      }
      """;

  private static final Plan PLAN = PlannedLow.of(TEXT, MemorySpace.EXTERNAL);

  private static int step(String op, int number) {
    var rank = PLAN.rankPlans().getFirst();
    int found = 0;
    for (int s = 0; s < rank.steps().size(); s++) {
      if (rank.steps().get(s) instanceof Step.Compute(int index)
          && rank.graph().ops().get(index).def().name().name().equals(op)
          && found++ == number) {
        return s;
      }
    }
    throw new AssertionError("no " + op);
  }

  private static List<String> wrong(Plan plan) {
    return PlanVerifier.verify(plan).stream().map(Violation::toString).toList();
  }

  private static List<String> wrongSteps(Consumer<List<Step>> change) {
    return wrong(PlanEdits.of(PLAN).steps(change).restated());
  }

  @Test
  void tensorsMoveAndComeBack() {
    assertThat(wrong(PLAN)).isEmpty();
    assertThat(PLAN.forRank(0).hostBytes()).isEqualTo(64 * 64 * 4);
    assertThat(PLAN.least()).isPresent();
  }

  @Test
  void somethingWaitsForEachCopy() {
    assertThat(wrongSteps(steps -> steps.remove(step("await_copy", 1))))
        .anyMatch(text -> text.contains("no step runs symplan::await_copy"));
    // The copy back is read, and only then waited for.
    assertThat(
            wrongSteps(
                steps -> {
                  var await = steps.remove(step("await_copy", 1));
                  steps.add(await);
                }))
        .anyMatch(text -> text.contains("symplan::await_copy must change before"));
    // It is waited for before it begins.
    assertThat(
            wrongSteps(
                steps -> {
                  var await = steps.remove(step("await_copy", 1));
                  steps.add(step("reload", 0), await);
                }))
        .anyMatch(text -> text.contains("before symplan::reload"));
  }

  @Test
  void copiesAreWaitedForWithTheirSource() {
    var rank = PLAN.rankPlans().getFirst();
    int end = rank.steps().get(step("await_copy", 0)) instanceof Step.Compute(int op) ? op : -1;
    int other = rank.steps().get(step("await_copy", 1)) instanceof Step.Compute(int op) ? op : -1;
    var twice = rank.graph().ops().get(end);
    assertThat(wrong(PlanEdits.of(PLAN).op(other, _ -> twice).plan()))
        .anyMatch(text -> text.contains("but no copy to it is under way"))
        .anyMatch(text -> text.contains("nothing waits for symplan::reload"));
  }

  @Test
  void hostMemoryHoldsWhatIsOffloadedOnly() {
    var host =
        PLAN.forRank(0).buffers().stream()
            .filter(buffer -> buffer.arena() == ArenaKind.HOST)
            .findFirst()
            .orElseThrow();
    assertThat(
            wrong(
                PlanEdits.of(PLAN)
                    .buffer(host.name(), b -> PlanEdits.at(b, ArenaKind.LOCAL, false, 0))
                    .restated()))
        .anyMatch(text -> text.contains("which is not in the host's memory"));
    var other =
        PLAN.forRank(0).buffers().stream()
            .filter(buffer -> buffer.arena().isPlanned())
            .findFirst()
            .orElseThrow();
    assertThat(
            wrong(
                PlanEdits.of(PLAN)
                    .buffer(other.name(), b -> PlanEdits.at(b, ArenaKind.HOST, false, 1 << 20))
                    .restated()))
        .anyMatch(text -> text.contains("in the host's memory"));
  }

  /** An input that the caller has on the host is nowhere else, and no other is there. */
  @Test
  void inputsAreWhereTheCallerHasThem() {
    var text =
        """
        graph version 1
        graph step(x: f32[64, 64] @host, y: f32[64, 64] @local) {
          r = symplan::reload(x)
          z = aten::mm(r, y)
          return z
        }
        """;
    var plan = plan(text);

    assertThat(wrong(plan)).isEmpty();
    assertThat(wrong(moved(plan, "x", ArenaKind.LOCAL)))
        .anyMatch(message -> message.contains("the caller gives x, which is not in the host's"));
    assertThat(wrong(moved(plan, "y", ArenaKind.HOST)))
        .anyMatch(message -> message.contains("the caller gives y, which is in the host's"));
  }

  /** A tensor that a graph reloads is a new one: writes into it leave the input as it is. */
  @Test
  void reloadedTensorsAreNotTheInput() {
    var text =
        """
        graph version 1
        graph step(x: f32[64, 64] @host, y: f32[64, 64] @local) {
          r = symplan::reload(x)
          s = aten::add_.Tensor(r, y)
          q = symplan::reload(x)
          z = aten::mm(s, q)
          return z
        }
        """;

    assertThat(wrong(plan(text))).isEmpty();
  }

  private static Plan plan(String text) {
    return Compiler.forTarget(Target.H200_X4)
        .compile(GraphParser.parse(new SourceFile("step.graph", text)));
  }

  private static Plan moved(Plan plan, String buffer, ArenaKind to) {
    return PlanEdits.of(plan).buffer(buffer, b -> PlanEdits.at(b, to, false, 1 << 20)).restated();
  }
}
