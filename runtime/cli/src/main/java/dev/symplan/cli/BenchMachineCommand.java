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

  @Mixin private ProductOption product;

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
    int size = product.size();
    var dtypes = flags.dtypes();
    return flags.measure(
        console,
        run -> {
          dtypes.forEach(dtype -> run.bench().machine(dtype, size, copied));
          return run.code();
        });
  }
}
