package dev.symplan.cli.bench;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.planner.calibrate.BenchTable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "table",
    description = {
      "Show measured times side by side, including PyTorch's (bench_torch.py).",
      "A row is marked if the planner's pick is not within 3%% of the fastest."
    })
final class BenchTableCommand extends ConsoleCommand {
  @Mixin private PointFiles files;

  @Option(
      names = "--target",
      paramLabel = "NAME|FILE",
      description = "The target whose picks are shown (default: ${DEFAULT-VALUE}).",
      defaultValue = "h200x4")
  private String target;

  @Option(names = "--markdown", description = "Write tables for a document.")
  private boolean markdown;

  BenchTableCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var planned = CompileFlags.target(target, "--target", spec);
    var points = files.read();
    if (markdown) {
      console.print(BenchTable.markdown(points, planned));
    } else {
      points.comments().forEach(line -> console.print("# " + line + "\n"));
      console.print(BenchTable.text(points, planned));
    }
    return ExitCode.OK;
  }
}
