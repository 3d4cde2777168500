package dev.symplan.cli.bench;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.planner.calibrate.BenchPlot;
import dev.symplan.planner.file.AtomicFile;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "plot",
    description = "Draw measured times over sizes, with the limits of the links.")
final class BenchPlotCommand extends ConsoleCommand {
  @Mixin private PointFiles files;

  @Option(
      names = "--svg",
      paramLabel = "FILE",
      required = true,
      description = "Write the plot to this file.")
  private Path svg;

  @Option(
      names = "--target",
      paramLabel = "NAME|FILE",
      description = "The target whose links set the limit (default: ${DEFAULT-VALUE}).",
      defaultValue = "h200x4")
  private String target;

  BenchPlotCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    files.requireNotRead(svg);
    var planned = CompileFlags.target(target, "--target", spec);
    AtomicFile.write(svg, BenchPlot.svg(files.read(), planned), "the plot");
    console.progress("plot written to " + svg);
    return ExitCode.OK;
  }
}
