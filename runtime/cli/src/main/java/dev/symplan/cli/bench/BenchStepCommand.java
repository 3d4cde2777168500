package dev.symplan.cli.bench;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.runtime.bench.Bench;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "step",
    description = {
      "Measure the host's overhead for a run: small products, each followed by an all_reduce of its"
          + " result."
    })
final class BenchStepCommand extends ConsoleCommand {
  @Mixin private BenchFlags flags;

  @Option(
      names = "--products",
      paramLabel = "N",
      description = "The number of products and all_reduces (default: ${DEFAULT-VALUE}).",
      defaultValue = "20")
  private int products;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description = "Runs in each measurement (default: ${DEFAULT-VALUE}).",
      defaultValue = "1000")
  private int runs;

  BenchStepCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (products < 1 || runs < 1) {
      throw flags.usage("--products and --runs must be at least 1");
    }
    return flags.measure(
        console,
        run -> {
          print(run.bench().step(products, runs));
          return ExitCode.OK;
        });
  }

  private void print(Bench.Step step) {
    double wall = step.wall().median();
    double work = step.device().median();
    console.print(
        String.format(
            Locale.ROOT,
            "%s instructions: %.1f µs from call to return (%.1f to %.1f), of which the device is"
                + " busy for %.1f; the host takes %.1f\n",
            2 * products,
            wall,
            step.wall().least(),
            step.wall().most(),
            work,
            wall - work));
  }
}
