package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.codegen.Lowering;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.check.OutputCheck;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Captured runs of PyTorch on four GPUs, with what is generated for each rank's own work. */
class EmulatedCasesTest {
  private static final Path CASES =
      Path.of(System.getProperty("symplan.shared", "../shared")).resolve("cases/numeric");

  static Stream<String> cases() {
    return Stream.of(
        "allreduce_relu",
        "complex_rotary",
        "tp_mlp_f32",
        "tp_mlp_bf16",
        "sp_mlp",
        "fsdp_mlp_train_fwd",
        "fsdp_mlp_train_bwd",
        "fsdp_mlp_train_step",
        "symm_mem",
        "jax_adam_block_step",
        "jax_all_to_all",
        "jax_branch",
        "jax_fsdp_step",
        "jax_layers_scanned",
        "jax_ragged_all_to_all",
        "jax_sorted_rows",
        "jax_tp_mlp_bf16_auto",
        "llama_tiny",
        "llama_tiny_train_fwd",
        "llama_tiny_train_bwd");
  }

  @ParameterizedTest
  @MethodSource("cases")
  void givesWhatWasCaptured(String name) {
    var folder = folder(name);
    assumeTrue(Files.exists(folder), "the case is not here");
    var plan = plan(folder);
    try (var session = EmulatedSession.open(List.of(Lowering.lower(plan))).getFirst()) {
      check(new Case(folder), plan, session);
    }
  }

  /** {@return a captured case, of the repository's or of those beside it} */
  static Path folder(String name) {
    var own = Path.of(System.getProperty("symplan.root"), "samples", "cases", name);
    return Files.exists(own) ? own : CASES.resolve(name);
  }

  static Plan plan(Path folder) {
    return plan(folder, CompileOptions.DEFAULT);
  }

  static Plan plan(Path folder, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4).with(options).compile(folder);
  }

  /** Runs a case and compares with what was captured. */
  static void check(Case captured, Plan plan, Session session) {
    captured.fillInputs(session, plan, Weights.NONE);
    session.run();
    for (int rank = 0; rank < session.ranks(); rank++) {
      var expected = captured.expected(rank, plan.forRank(rank).graph());
      assertThat(OutputCheck.of(plan, session, rank, expected))
          .as("rank %s", rank)
          .isNotEmpty()
          .allMatch(OutputCheck::agrees);
    }
  }
}
