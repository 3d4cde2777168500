package dev.symplan.cli;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.ir.diag.Units;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Check that a plan is safe: no two live values overlap, no peer accesses memory that is in"
          + " use, and all ranks agree."
    })
final class VerifyCommand extends ConsoleCommand {
  @Parameters(paramLabel = "INPUT", description = "A plan, or what compile takes.")
  private Path input;

  @Mixin private CompileFlags flags;

  VerifyCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    // No plan gets this far unverified.
    var plan = Inputs.plan(input, flags, console);
    console.print(
        "plan %s is safe on %s: %s, %s, digest %s\n"
            .formatted(
                plan.name(),
                Units.count(plan.worldSize(), "rank"),
                Units.count(
                    plan.rankPlans().stream().mapToInt(p -> p.buffers().size()).sum(), "buffer"),
                Units.count(plan.rankPlans().getFirst().collectives().size(), "collective"),
                plan.digest()));
    return ExitCode.OK;
  }
}
