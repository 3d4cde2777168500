package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Inputs in the host's memory, and their copies on the device. */
class HostInputRulesTest {
  /** The state m is read, changed later, and read again. */
  private static final String TEXT =
      """
      graph version 1
      graph step(x: f32[64, 64], w: f32[64, 64], m: f32[64, 64]) {
        a = aten::mm(x, m)
        b = aten::mm(a, w)
        c = aten::mm(b, w)
        u = aten::mul_.Tensor(m, c)
        d = aten::mm(c, w)
        e = aten::mm(d, w)
        y = aten::mm(e, m)
        return y
      }
      """;

  private static final Plan PLAN = PlannedLow.of(TEXT, MemorySpace.ANY);

  private static final long TENSOR = 64 * 64 * 4;

  private static List<Op> ops() {
    return PLAN.forRank(0).graph().ops();
  }

  private static int op(Plan plan, String result) {
    var ops = plan.forRank(0).graph().ops();
    return IntStream.range(0, ops.size())
        .filter(i -> ops.get(i).results().stream().anyMatch(r -> r.name().equals(result)))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no " + result));
  }

  private static Value value(Plan plan, String name) {
    return plan.forRank(0).graph().values().stream()
        .filter(value -> value.name().equals(name))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no " + name));
  }

  private static List<String> wrong(Plan plan) {
    return PlanVerifier.verify(plan).stream().map(Violation::toString).toList();
  }

  /** {@return the findings if an op takes another argument} */
  private static List<String> wrongWith(Plan plan, int op, int argument, Value value) {
    return wrong(
        PlanEdits.of(plan)
            .op(
                op,
                old -> {
                  var args = new ArrayList<>(old.args());
                  args.set(argument, new Arg.Ref(value));
                  return new Op(
                      old.def(),
                      ImmutableList.copyOf(args),
                      old.results(),
                      old.span(),
                      old.notes());
                })
            .plan());
  }

  @Test
  void inputsVisitTheDevice() {
    assertThat(wrong(PLAN)).isEmpty();
    assertThat(PLAN.forRank(0).hostBytes()).isEqualTo(3 * TENSOR);
    // A product needs three tensors.
    assertThat(PLAN.total().bytes()).isEqualTo(3 * TENSOR);
    assertThat(ops().stream().filter(op -> op.def().name().name().equals("offload_"))).hasSize(1);
  }

  @Test
  void whatIsChangedGoesBackToItsInput() {
    assertThat(wrongWith(PLAN, op(PLAN, "m_stored"), 1, value(PLAN, "w")))
        .anyMatch(text -> text.contains("writes over the input w, of which m_back_1 is not a copy"))
        .anyMatch(
            text ->
                text.contains(
                    "the input m ends without what aten::mul_.Tensor → u wrote into its"
                        + " copy"));
  }

  @Test
  void copiesFromBeforeAChangeAreNotRead() {
    assertThat(wrongWith(PLAN, op(PLAN, "y"), 1, value(PLAN, "m_back")))
        .anyMatch(
            text ->
                text.contains(
                    "aten::mm → y reads m_back without what aten::mul_.Tensor → u wrote into"
                        + " another copy of the input m"));
  }

  /** The caller may change w before the second graph runs. */
  @Test
  void everyGraphMakesItsOwnCopies() {
    var plan =
        PlannedLow.of(
            """
            graph version 1
            graph first(x: f32[64, 64], w: f32[64, 64], y: f32[64, 64]) {
              a = aten::mm(x, w)
              s = aten::sum(a)
              symplan::border("second", 3, 1)
              b = aten::mm(y, w)
              c = aten::mm(b, y)
              t = aten::sum(c)
              return s, t
            }
            """,
            MemorySpace.ANY);
    assertThat(wrong(plan)).isEmpty();
    assertThat(wrongWith(plan, op(plan, "b"), 1, value(plan, "w_back")))
        .anyMatch(
            text ->
                text.contains(
                    "aten::mm → b reads w_back, which an earlier graph of the program copied from"
                        + " the input w"));
  }

  @Test
  void inputsLieWhereTheirTypesSay() {
    assertThat(
            wrong(
                PlanEdits.of(PLAN)
                    .buffer("w", b -> PlanEdits.at(b, ArenaKind.LOCAL, false, 1 << 20))
                    .restated()))
        .anyMatch(
            text -> text.contains("the input w is f32[64, 64] @host, but is not in the host"));
  }
}
