package dev.symplan.cli;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "machine",
    description = "Measure a launch, a copy and a product: what else a target says of a device.")
final class BenchMachineCommand implements Callable<Integer> {
  private final Console console;

  @Mixin private BenchFlags flags;

  @Option(
      names = "--product",
      paramLabel = "N",
      description = "Multiply matrices of N × N (default: ${DEFAULT-VALUE}).",
      defaultValue = "8192")
  private int product;

  @Option(
      names = "--bytes",
      paramLabel = "SIZE",
      description = "What is copied (default: ${DEFAULT-VALUE}).",
      defaultValue = "256MiB")
  private String bytes;

  BenchMachineCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    long copied = flags.bytes("--bytes", bytes);
    if (product < 1) {
      throw flags.usage("--product must be at least 1");
    }
    var dtypes = flags.dtypes();
    var device = flags.backend(console);
    if (device.isEmpty()) {
      return ExitCode.NO_DEVICE;
    }
    try (var run = flags.start(console, device.get())) {
      var bench = run.bench(device.get());
      dtypes.forEach(dtype -> bench.machine(dtype, product, copied));
      return run.points().list().isEmpty() ? ExitCode.RUNTIME : ExitCode.OK;
    }
  }
}
