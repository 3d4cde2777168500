package dev.symplan.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

@Command(
    description = {
      "Measure collectives and what runs beside them, and show measured times side by side.",
      "Times are of plans as they run, with their barriers, in the steady state: on GPUs many runs"
          + " in a CUDA graph, on the slowest GPU's clock."
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
    throw new ParameterException(spec.commandLine(), "say what: collectives, overlap, table, …");
  }
}
