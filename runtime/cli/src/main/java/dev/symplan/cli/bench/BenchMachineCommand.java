package dev.symplan.cli.bench;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

@Command(
    name = "machine",
    description = "Measure a launch, a copy and a product, for the other figures in a target.")
final class BenchMachineCommand extends ConsoleCommand {
  @Mixin private BenchFlags flags;

  @Mixin private Workload workload;

  BenchMachineCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    long copied = workload.bytes(Workload.COPIED);
    int size = workload.product(Workload.PRODUCT);
    var dtypes = flags.dtypes();
    return flags.measure(
        console,
        run -> {
          dtypes.forEach(dtype -> run.bench().machine(dtype, size, copied));
          return run.code();
        });
  }
}
