package dev.symplan.cli;

import dev.symplan.planner.report.PlanDiff;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Tell in what two plans differ: variants and why, values that moved or grew, memory, time.",
      "Exits with 1 when they differ, 0 when they do not."
    })
final class DiffCommand implements Callable<Integer> {
  private final Console console;

  @Parameters(index = "0", paramLabel = "A", description = "A plan, or what compile takes.")
  private Path before;

  @Parameters(index = "1", paramLabel = "B", description = "Another.")
  private Path after;

  @Mixin private CompileFlags flags;

  DiffCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    var differences =
        PlanDiff.text(Inputs.plan(before, flags, console), Inputs.plan(after, flags, console));
    console.print(differences.isEmpty() ? "no difference\n" : differences);
    return differences.isEmpty() ? ExitCode.OK : ExitCode.FAILED;
  }
}
