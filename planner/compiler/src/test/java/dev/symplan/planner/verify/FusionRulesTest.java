package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.VerifierFixtures.compile;
import static dev.symplan.planner.verify.VerifierFixtures.first;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import org.junit.jupiter.api.Test;

/** Ops that may be one step, and tensors that may then do without memory. */
class FusionRulesTest {
  private static final String SILU =
      """
      graph silu(x: bf16[64, 64], w: bf16[64, 64]) {
        gate = aten::mm(x, w)
        g = prims::convert_element_type(gate, torch.float32)
        n = aten::neg(g)
        e = aten::exp(n)
        d = aten::add.Scalar(e, 1)
        s = aten::div.Tensor(g, d)
        y = prims::convert_element_type(s, torch.bfloat16)
        r = aten::mm(y, w)
        return r
      }
      """;

  private static Step fused(int... ops) {
    return new Step.Fused(ImmutableIntArray.copyOf(ops));
  }

  @Test
  void elementwiseRunIsOneStepWithoutMemoryInside() {
    var plan = compile(SILU).rankPlans().getFirst();
    assertThat(plan.steps())
        .containsExactly(new Step.Compute(0), fused(1, 2, 3, 4, 5, 6), new Step.Compute(7));
    // Of the run, only the result has memory: the place of what it was computed from.
    assertThat(plan.buffers()).extracting(b -> b.name()).containsExactly("x", "w", "gate", "r");
    assertThat(plan.maxLive()).isEqualTo(2 * 64 * 64 * 2);
  }

  @Test
  void normIsOneStepWithoutMemoryInside() {
    var text =
        """
        graph rms(x: bf16[64, 64], w: bf16[64]) {
          y = aten::mm(x, x)
          f = prims::convert_element_type(y, torch.float32)
          q = aten::pow.Tensor_Scalar(f, 2)
          m = aten::mean.dim(q, [-1], True)
          e = aten::add.Scalar(m, 1e-6)
          r = aten::rsqrt(e)
          n = aten::mul.Tensor(f, r)
          b = prims::convert_element_type(n, torch.bfloat16)
          o = aten::mul.Tensor(b, w)
          z = aten::mm(o, x)
          return z
        }
        """;
    var plan = compile(text).rankPlans().getFirst();
    assertThat(plan.steps())
        .containsExactly(new Step.Compute(0), fused(1, 2, 3, 4, 5, 6, 7, 8), new Step.Compute(9));
    assertThat(plan.buffers()).extracting(b -> b.name()).containsExactly("x", "w", "y", "z");
  }

  @Test
  void fewLongRowsAreNoKernel() {
    var text =
        """
        graph g(x: f32[2, 100000]) {
          s = aten::sum.dim_IntList(x, [1], True)
          y = aten::mul.Tensor(x, s)
          z = aten::neg(y)
          return z
        }
        """;
    assertThat(compile(text).rankPlans().getFirst().steps())
        .containsExactly(new Step.Compute(0), fused(1, 2));
  }

  @Test
  void sumOverAllRowsInsideARun() {
    var text =
        """
        graph g(x: f32[64, 64]) {
          a = aten::mm(x, x)
          b = aten::exp(a)
          s = aten::sum.dim_IntList(b, [0], True)
          c = aten::mul.Tensor(b, s)
          d = aten::mm(c, c)
          return d
        }
        """;
    var plan =
        PlanEdits.of(compile(text))
            .steps(
                steps -> {
                  steps.set(1, fused(1, 2, 3));
                  steps.remove(2);
                  steps.remove(2);
                })
            .restated();
    assertThat(first(plan, Rule.STRUCTURE).message())
        .isEqualTo("aten::exp → b cannot be fused with aten::sum.dim_IntList → s");
  }

  @Test
  void runThatWouldHoldMoreIsCut() {
    // One after the other, a's place is free before c is made; one kernel would hold all three.
    var text =
        """
        graph g(x: f32[64, 64], y: bf16[64, 64]) {
          a = aten::mm(x, x)
          b = aten::mm(y, y)
          a2 = prims::convert_element_type(a, torch.bfloat16)
          c = aten::exp(b)
          d = aten::mm(b, c)
          return a2, d
        }
        """;
    assertThat(compile(text).rankPlans().getFirst().steps())
        .doesNotHaveAnyElementsOfTypes(Step.Fused.class);
  }

  @Test
  void waitingForCollectivesDoesNotHoldUpWhatIsBefore() {
    var text =
        """
        graph g(x: f32[64, 64]) {
          a = aten::mm(x, x)
          r = _c10d_functional::all_reduce(a, "sum", "tp")
          b = aten::relu(x)
          c = aten::exp(b)
          d = aten::add.Tensor(c, r)
          return d
        }
        """;
    assertThat(compile(text).rankPlans().getFirst().steps())
        .contains(fused(2, 3), new Step.Compute(4));
  }

  @Test
  void valueWithoutMemoryThatAnotherStepReads() {
    var plan =
        PlanEdits.of(compile(SILU))
            .steps(
                steps -> {
                  steps.set(1, fused(1, 2, 3, 4));
                  steps.add(2, fused(5, 6));
                })
            .restated();
    assertThat(first(plan, Rule.STRUCTURE).message()).isEqualTo("g has no memory");
  }

  @Test
  void productInsideARun() {
    var plan = withProduct();
    assertThat(first(plan, Rule.STRUCTURE).toString())
        .isEqualTo(
            "structure (rank 0, step 1): aten::mm → r cannot be fused with"
                + " prims::convert_element_type → g");
  }

  private static Plan withProduct() {
    return PlanEdits.of(compile(SILU))
        .steps(
            steps -> {
              steps.set(1, fused(1, 2, 3, 4, 5, 6, 7));
              steps.remove(2);
            })
        .restated();
  }

  @Test
  void resultOverWhatOtherElementsStillRead() {
    var text =
        """
        graph g(x: f32[64, 64]) {
          a = aten::mm(x, x)
          row = aten::sum.dim_IntList(a, [0])
          b = aten::mul.Tensor(a, row)
          c = aten::exp(b)
          return c
        }
        """;
    var plan = PlanEdits.of(compile(text)).over("row", "a").restated();
    assertThat(PlanVerifier.verify(plan))
        .anySatisfy(
            violation ->
                assertThat(violation.toString())
                    .startsWith("overwritten (rank 0, step 2): aten::exp → c writes c at ")
                    .contains(" over the step's operand row at "));
  }

  @Test
  void otherViewOfWhatTheStepMakes() {
    var text =
        """
        graph g(x: f32[64, 64], y: f32[64, 64]) {
          r = aten::add.Tensor(x, y)
          v = aten::t(r)
          s = aten::relu(v)
          u = aten::mul.Tensor(s, y)
          return u, r
        }
        """;
    var plan =
        PlanEdits.of(compile(text))
            .steps(
                steps -> {
                  steps.clear();
                  steps.add(fused(0, 2, 3));
                })
            .restated();
    assertThat(first(plan, Rule.STRUCTURE).message())
        .isEqualTo("aten::relu → s cannot be fused with aten::add.Tensor → r");
  }

  @Test
  void emptyTensors() {
    var text =
        """
        graph g(x: f32[0, 64]) {
          a = aten::relu(x)
          b = aten::exp(a)
          return a, b
        }
        """;
    var plan =
        PlanEdits.of(compile(text))
            .steps(
                steps -> {
                  steps.clear();
                  steps.add(fused(0, 1));
                })
            .restated();
    assertThat(first(plan, Rule.STRUCTURE).message())
        .isEqualTo("aten::relu → a cannot be fused with aten::exp → b");
  }
}
