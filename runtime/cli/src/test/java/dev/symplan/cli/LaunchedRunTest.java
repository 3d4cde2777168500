package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.LaunchedRun;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.function.ToIntBiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LaunchedRunTest {
  private static final int RANKS = 3;

  /** One process's part, by the world that it is in. */
  @FunctionalInterface
  private interface Work extends ToIntBiFunction<World, Console> {}

  private static List<Ran> run(Work work) {
    int port = ChildProcess.freePort();
    try (var threads = Executors.newCachedThreadPool()) {
      var results = new ArrayList<CompletableFuture<Ran>>();
      for (int rank = 0; rank < RANKS; rank++) {
        var environment =
            new LaunchEnvironment(Launcher.SRUN, rank, RANKS, rank, "localhost", port, "");
        results.add(CompletableFuture.supplyAsync(() -> run(environment, work), threads));
      }
      return results.stream().map(CompletableFuture::join).toList();
    }
  }

  private static Ran run(LaunchEnvironment environment, Work work) {
    return Ran.on(
        console ->
            LaunchedRun.call(
                environment,
                SessionOptions.DEFAULT.withTimeout(Duration.ofSeconds(20)),
                console,
                (options, own) -> work.applyAsInt(options.world().orElseThrow(), own)));
  }

  private static CompileException wrong() {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_TENSORS,
            Span.ofFile(new SourceFile("rank2.inputs.safetensors", "")),
            "no tensor 'in0'",
            ""));
  }

  @Test
  void rankZeroSpeaksForAll() {
    var results =
        run(
            (_, console) -> {
              console.print("done\n");
              console.progress("progress");
              return ExitCode.OK;
            });
    assertThat(results)
        .containsExactly(
            new Ran(0, "done\n", "progress" + System.lineSeparator()),
            new Ran(0, "", ""),
            new Ran(0, "", ""));
  }

  @Test
  void allExitWithTheWorstCode() {
    assertThat(run((world, _) -> world.rank() == 1 ? ExitCode.FAILED : ExitCode.OK))
        .extracting(Ran::code)
        .containsOnly(ExitCode.FAILED);
  }

  @Test
  void allSayWhatOneLacks() {
    var results =
        run(
            (world, _) -> {
              if (world.rank() == 2) {
                throw wrong();
              }
              world.barrier("session");
              return ExitCode.OK;
            });
    assertThat(results).extracting(Ran::code).containsOnly(ExitCode.FAILED);
    assertThat(results.get(2).err())
        .contains("rank2.inputs.safetensors")
        .contains("error[bad-tensors]: no tensor 'in0'");
    assertThat(results.subList(0, 2))
        .allSatisfy(
            result ->
                assertThat(result.err())
                    .startsWith("error: rank 2: rank2.inputs.safetensors")
                    .contains("no tensor 'in0'"));
  }

  @Test
  void whatAllLackIsSaidOnce() {
    var results =
        run(
            (_, _) -> {
              throw wrong();
            });
    assertThat(results).extracting(Ran::code).containsOnly(ExitCode.FAILED);
    assertThat(results.stream().filter(result -> !result.err().isEmpty())).hasSize(1);
  }

  @Test
  void allReportAFailureOfOne() {
    var results =
        run(
            (world, _) -> {
              if (world.rank() == 1) {
                throw new RunException("rank 1: all_reduce 'r' (f.graph:4) waited more than 27 s");
              }
              world.get("nothing");
              return ExitCode.OK;
            });
    assertThat(results)
        .allSatisfy(
            result -> {
              assertThat(result.code()).isEqualTo(ExitCode.RUNTIME);
              assertThat(result.err())
                  .startsWith("error: rank 1: all_reduce 'r' (f.graph:4) waited more than 27 s");
            });
  }
}
