package dev.symplan.cli.bench;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.file.AtomicFile;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A text file that grows line by line: each line is in it at once, even if the program ends early.
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
    } catch (IOException e) {
      throw unwritable(path, e);
    }
  }

  void append(String text) {
    try {
      out.write(text);
      out.flush();
    } catch (IOException e) {
      throw unwritable(path, e);
    }
  }

  private static CompileException unwritable(Path path, IOException why) {
    return AtomicFile.unwritable(path, "the file", why);
  }

  @Override
  public void close() {
    try {
      out.close();
    } catch (IOException e) {
      throw unwritable(path, e);
    }
  }
}
