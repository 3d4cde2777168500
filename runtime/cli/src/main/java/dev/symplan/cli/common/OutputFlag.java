package dev.symplan.cli.common;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Option;

/** The destination of a command's result: a file, or standard output. */
public final class OutputFlag {
  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "Write to this file instead of standard output.")
  private Optional<Path> file = Optional.empty();

  /**
   * {@return the file; empty for standard output}
   *
   * @throws dev.symplan.ir.diag.CompileException when the file is one that the command reads
   */
  public Optional<Path> file(Path... inputs) {
    file.ifPresent(path -> Outputs.requireNotRead(path, List.of(inputs)));
    return file;
  }
}
