package dev.symplan.cli.bench;

import dev.symplan.cli.common.Console;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

@Command(
    description = {
      "Measure collectives, the compute beside them and whole graphs, and show measured times side"
          + " by side.",
      "Times are for plans as they run, including barriers, in the steady state: on GPUs, many runs"
          + " in a CUDA graph, by the slowest GPU's clock."
    },
    synopsisSubcommandLabel = "COMMAND")
public final class BenchCommand implements Runnable {
  @Spec private CommandSpec spec;

  private BenchCommand() {}

  /** {@return the command with its subcommands} */
  public static CommandLine of(Console console) {
    return new CommandLine(new BenchCommand())
        .addSubcommand(new BenchCollectivesCommand(console))
        .addSubcommand(new BenchOverlapCommand(console))
        .addSubcommand(new BenchStepCommand(console))
        .addSubcommand(new BenchGraphCommand(console))
        .addSubcommand(new BenchMachineCommand(console))
        .addSubcommand(new BenchTableCommand(console))
        .addSubcommand(new BenchPlotCommand(console));
  }

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(), "a subcommand is required: collectives, overlap, table, …");
  }
}
