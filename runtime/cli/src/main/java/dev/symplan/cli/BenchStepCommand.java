package dev.symplan.cli;

import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "step",
    description = {
      "Measure what the host takes for a run: small products, each followed by the all_reduce of"
          + " its result."
    })
final class BenchStepCommand implements Callable<Integer> {
  private final Console console;

  @Mixin private BenchFlags flags;

  @Option(
      names = "--products",
      paramLabel = "N",
      description = "So many products and all_reduces (default: ${DEFAULT-VALUE}).",
      defaultValue = "20")
  private int products;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description = "Runs in each measurement (default: ${DEFAULT-VALUE}).",
      defaultValue = "1000")
  private int runs;

  BenchStepCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    if (products < 1 || runs < 1) {
      throw flags.usage("--products and --runs must be at least 1");
    }
    var device = flags.backend(console);
    if (device.isEmpty()) {
      return ExitCode.NO_DEVICE;
    }
    try (var run = flags.start(console, device.get())) {
      var step = run.bench(device.get()).step(products, runs);
      double wall = step.wall().median();
      double work = step.device().median();
      console.print(
          String.format(
              Locale.ROOT,
              "%d instructions: %.1f µs from call to return (%.1f to %.1f), of which the device"
                  + " works %.1f; the host takes %.1f\n",
              2 * products,
              wall,
              step.wall().least(),
              step.wall().most(),
              work,
              wall - work));
    }
    return ExitCode.OK;
  }
}
