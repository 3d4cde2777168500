package dev.symplan.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Executable;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.failure.RunException;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Plans for a backend have its variants only, and it refuses plans with others. */
class BackendVariantsTest {

  /** As a backend for GPUs declares itself; it runs nothing. */
  private static final Backend FEW =
      new Backend() {
        @Override
        public String name() {
          return "few";
        }

        @Override
        public BackendVariants variants(boolean multicast) {
          var all =
              BackendVariants.all(name()).without(Variant.CUSTOM, "does not implement custom ops");
          return multicast ? all : all.withoutMulticast("does not create multicast objects");
        }

        @Override
        public Optional<String> unavailable() {
          return Optional.empty();
        }

        @Override
        public Session open(Executable executable, SessionOptions options) {
          throw new UnsupportedOperationException("opened");
        }
      };

  private static final CompileOptions MULTICAST = CompileOptions.DEFAULT.withMulticast(true);

  private static final String GRAPH =
      """
      graph version 1
      group tp = [0, 1, 2, 3, 4, 5, 6, 7]
      graph g(x: bf16[4194304]) {
        a = aten::relu(x)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        return r
      }
      """;

  private static final String CUSTOM =
      """
      graph version 1
      group tp = [0, 1, 2, 3, 4, 5, 6, 7]
      op lib::exchange(Tensor x, str group) -> Tensor symm_mem(x) group(group)
      graph g(x: bf16[64]) {
        r: bf16[64] = lib::exchange(x, "tp")
        return r
      }
      """;

  private static Plan plan(String graph, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X8)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("dir/mlp.graph", graph)));
  }

  private static Verdict verdict(Plan plan, Variant variant) {
    return plan.rankPlans().getFirst().collectives().getFirst().verdicts().stream()
        .filter(verdict -> verdict.variant() == variant)
        .findFirst()
        .orElseThrow();
  }

  @Test
  void thePlannerChoosesAmongThoseOfTheBackend() {
    assertThat(verdict(plan(GRAPH, MULTICAST), Variant.MULTIMEM).chosen()).isTrue();
    var plan = plan(GRAPH, MULTICAST.withBackend(FEW.variants(false)));
    var verdict = verdict(plan, Variant.MULTIMEM);
    assertThat(verdict.reason()).isEqualTo(Reason.NOT_IN_BACKEND);
    assertThat(verdict.detail()).isEqualTo("backend few does not create multicast objects");
    assertThatThrownBy(() -> Session.open(plan, FEW)).hasMessage("opened");
  }

  @Test
  void whatTheTargetLacksIsSaidFirst() {
    var plan = plan(GRAPH, CompileOptions.DEFAULT.withBackend(FEW.variants(false)));
    assertThat(verdict(plan, Variant.MULTIMEM).reason()).isEqualTo(Reason.MULTICAST_OFF);
  }

  @Test
  void aVariantThatTheBackendLacksCannotBeForced() {
    var forced =
        MULTICAST
            .withVariants(ImmutableMap.of("all_reduce", Variant.MULTIMEM))
            .withBackend(FEW.variants(false));
    assertThatThrownBy(() -> plan(GRAPH, forced))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'r' cannot run as multimem: backend few does not create");
  }

  @Test
  void aPlanWithAnotherVariantIsRefused() {
    assertThatThrownBy(() -> Session.open(plan(GRAPH, MULTICAST), FEW))
        .isInstanceOf(RunException.class)
        .hasMessage(
            "backend few: all_reduce 'r' (mlp.graph:5) is planned as multimem, but backend few does"
                + " not create multicast objects; make a new plan, with the same other options:"
                + " symplan compile dir/mlp.graph --ranks 8 --target h200x8 --backend few -o"
                + " PLAN");
  }

  /** The plan alone does not say that its user lets it. */
  @Test
  void aPlanWithMulticastRunsWhereItIsSwitchedOnAgain() {
    var plan = plan(GRAPH, MULTICAST.withBackend(FEW.variants(true)));
    assertThat(verdict(plan, Variant.MULTIMEM).chosen()).isTrue();
    assertThatThrownBy(() -> Session.open(plan, FEW))
        .hasMessageContaining("is planned as multimem, but backend few does not create");
    assertThatThrownBy(() -> Session.open(plan, FEW, SessionOptions.DEFAULT.withMulticast(true)))
        .hasMessage("opened");
  }

  @Test
  void noOtherPlanHelpsWhereTheBackendHasNoVariantOfTheKind() {
    assertThatThrownBy(() -> plan(CUSTOM, MULTICAST.withBackend(FEW.variants(false))))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("no variant can run 'r'");
    assertThatThrownBy(() -> Session.open(plan(CUSTOM, MULTICAST), FEW))
        .hasMessage(
            "backend few: custom 'r' (mlp.graph:5) is planned as custom, but backend few does not"
                + " implement custom ops");
  }
}
