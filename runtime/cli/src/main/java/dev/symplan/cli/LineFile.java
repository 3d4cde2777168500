package dev.symplan.cli;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A text file that grows line by line: what was appended is in it, even if the program ends in
 * between.
 */
final class LineFile implements AutoCloseable {
  private final Path path;
  private final BufferedWriter out;

  private LineFile(Path path, BufferedWriter out) {
    this.path = path;
    this.out = out;
  }

  /**
   * {@return the file, empty}
   *
   * @throws CompileException when it cannot be written
   */
  static LineFile create(Path path) {
    try {
      return new LineFile(path, Files.newBufferedWriter(path));
    } catch (IOException _) {
      throw unwritable(path);
    }
  }

  /**
   * Looks, without touching it, whether a file can be written later: before work whose result would
   * be lost.
   *
   * @throws CompileException when it cannot
   */
  static void check(Path path) {
    var folder = path.toAbsolutePath().getParent();
    boolean writable =
        Files.exists(path)
            ? !Files.isDirectory(path) && Files.isWritable(path)
            : folder != null && Files.isDirectory(folder) && Files.isWritable(folder);
    if (!writable) {
      throw unwritable(path);
    }
  }

  void append(String text) {
    try {
      out.write(text);
      out.flush();
    } catch (IOException _) {
      throw unwritable(path);
    }
  }

  private static CompileException unwritable(Path path) {
    return CompileException.ofFile(
        DiagnosticCode.UNREADABLE_FILE,
        path,
        "the file cannot be written",
        "choose a place that you may write to");
  }

  @Override
  public void close() {
    try {
      out.close();
    } catch (IOException _) {
      throw unwritable(path);
    }
  }
}
