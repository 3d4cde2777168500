package dev.symplan.cli;

import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.check.Bisection;
import dev.symplan.runtime.check.Bisection.Outcome;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Find the planner's decisions that make the check of a case fail. Bisect turns off variants,"
          + " realization, fusion, overlap and order in halves, and runs the case each time.",
      "Exits with 0 if the check does not fail, and with 1 otherwise."
    })
final class BisectCommand extends ConsoleCommand {
  @Parameters(paramLabel = "CASE", description = "A case directory with expected outputs.")
  private Path input;

  @Mixin private CompileFlags flags;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description = "The backend: host or cuda (default: host).",
      defaultValue = "host")
  private String backend;

  BisectCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var device = Backends.named(backend, spec);
    Backends.requireOneProcess("bisect", System.getenv());
    if (!Backends.isUsable(device, console)) {
      return ExitCode.NO_DEVICE;
    }
    if (!Case.isCase(input) || !new Case(input).hasOutputs()) {
      throw usage("CASE: '%s' is not a case directory with expected outputs".formatted(input));
    }
    return tell(
        Bisection.run(input, flags.forBackend(device).compiler(), device, console::progress));
  }

  private int tell(Outcome outcome) {
    return switch (outcome) {
      case Outcome.Agrees _ -> {
        console.print("the check does not fail\n");
        yield ExitCode.OK;
      }
      case Outcome.FailsAnyway _ -> {
        console.print(
            "the check also fails with every decision turned off: the plan is not the cause\n");
        yield ExitCode.FAILED;
      }
      case Outcome.Found(var decisions) -> {
        console.print(
            decisions.size() == 1
                ? "one decision makes the check fail:\n"
                : "%s decisions together make the check fail:\n".formatted(decisions.size()));
        for (var decision : decisions) {
          console.print("  %s (turn it off with %s)\n".formatted(decision.text(), decision.flag()));
        }
        yield ExitCode.FAILED;
      }
    };
  }
}
