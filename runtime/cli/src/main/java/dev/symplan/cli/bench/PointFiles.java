package dev.symplan.cli.bench;

import dev.symplan.cli.common.Outputs;
import dev.symplan.planner.calibrate.Points;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Parameters;

/** Files of measured times, which a command takes together. */
final class PointFiles {
  @Parameters(
      paramLabel = "FILE",
      arity = "1..*",
      description = "CSV files of measured times, as bench writes them.")
  private List<Path> files = new ArrayList<>();

  /** Refuses to write one of the files, as {@link Outputs#requireNotRead}. */
  void requireNotRead(Path file) {
    Outputs.requireNotRead(file, files);
  }

  /**
   * {@return the times of all files}
   *
   * @throws dev.symplan.ir.diag.CompileException when a file cannot be read or has no such times
   */
  Points read() {
    return Points.read(files);
  }
}
