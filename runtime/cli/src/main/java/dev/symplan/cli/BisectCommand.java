package dev.symplan.cli;

import dev.symplan.runtime.Bisection;
import dev.symplan.runtime.Bisection.Outcome;
import dev.symplan.runtime.Case;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

@Command(
    description = {
      "Find the decisions of the planner that make a case's check fail: variants, realization,"
          + " fusion, overlap and order are turned off by halves, and the case is run each time.",
      "Exits with 0 when the check does not fail, else with 1."
    })
final class BisectCommand implements Callable<Integer> {
  private final Console console;

  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "CASE", description = "A case directory with expected outputs.")
  private Path input;

  @Mixin private CompileFlags flags;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description = "Where to run: host or cuda (default: host).",
      defaultValue = "host")
  private String backend;

  BisectCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    var device = Backends.named(backend, spec);
    Backends.requireOneProcess("bisect", System.getenv());
    if (!Backends.isUsable(device, console)) {
      return ExitCode.NO_DEVICE;
    }
    if (!Case.isCase(input) || !new Case(input).hasOutputs()) {
      throw new ParameterException(
          spec.commandLine(),
          "CASE: '%s' is no case directory with outputs to check against".formatted(input));
    }
    return tell(Bisection.run(input, flags.compiler(), device, console::progress));
  }

  private int tell(Outcome outcome) {
    return switch (outcome) {
      case Outcome.Agrees _ -> {
        console.print("the check does not fail\n");
        yield ExitCode.OK;
      }
      case Outcome.FailsAnyway _ -> {
        console.print("the check fails with every decision turned off, too: it is not the plan\n");
        yield ExitCode.FAILED;
      }
      case Outcome.Found(var decisions) -> {
        console.print(
            decisions.size() == 1
                ? "the check fails by one decision alone:\n"
                : "the check fails by %s decisions together:\n".formatted(decisions.size()));
        for (var decision : decisions) {
          console.print("  %s (turned off by %s)\n".formatted(decision.text(), decision.flag()));
        }
        yield ExitCode.FAILED;
      }
    };
  }
}
