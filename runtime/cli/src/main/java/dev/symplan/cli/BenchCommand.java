package dev.symplan.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

@Command(
    description = {
      "Measure collectives and the compute beside them, and show measured times side by side.",
      "Times are for plans as they run, including barriers, in the steady state: on GPUs, many runs"
          + " in a CUDA graph, by the slowest GPU's clock."
    },
    subcommands = {
      BenchCollectivesCommand.class,
      BenchOverlapCommand.class,
      BenchStepCommand.class,
      BenchMachineCommand.class,
      BenchTableCommand.class,
      BenchPlotCommand.class
    },
    synopsisSubcommandLabel = "COMMAND")
final class BenchCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(), "a subcommand is required: collectives, overlap, table, …");
  }
}
