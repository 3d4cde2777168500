package dev.symplan.cli.bench;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Outputs;
import dev.symplan.planner.calibrate.Calibration;
import dev.symplan.planner.calibrate.CalibrationPrinter;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    description = {
      "Fit a target file to measured times, for --target.",
      "Reads CSV with the columns kind, variant, dtype, bytes, ranks and micros: one measurement"
          + " per line. Anything that was not measured comes from another target."
    })
public final class CalibrateCommand extends ConsoleCommand {
  @Mixin private PointFiles files;

  @Option(
      names = "--base",
      paramLabel = "NAME|FILE",
      description = "The target that supplies what was not measured (default: ${DEFAULT-VALUE}).",
      defaultValue = "h200x4")
  private String base;

  @Option(
      names = "--name",
      paramLabel = "NAME",
      description = "The new target's name (default: the name of the file written, or the base's).")
  private Optional<String> name = Optional.empty();

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "Write the target to this file.")
  private Optional<Path> output = Optional.empty();

  public CalibrateCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (name.filter(String::isBlank).isPresent()) {
      throw usage("--name must not be empty");
    }
    output.ifPresent(files::requireNotRead);
    if (Target.ofName(base).isEmpty()) {
      output.ifPresent(file -> Outputs.requireNotRead(file, List.of(Path.of(base))));
    }
    var from = CompileFlags.target(base, "--base", spec);
    var calibration =
        Calibration.of(
            files.read(),
            from,
            name.or(() -> output.map(CalibrateCommand::stem)).orElse(from.name()));
    output.ifPresent(file -> TargetFile.write(calibration.target(), file));
    console.print(CalibrationPrinter.print(calibration));
    output.ifPresent(file -> console.progress("target written to " + file));
    return ExitCode.OK;
  }

  private static String stem(Path file) {
    var text = String.valueOf(file.getFileName());
    return text.endsWith(".json") ? text.substring(0, text.length() - 5) : text;
  }
}
