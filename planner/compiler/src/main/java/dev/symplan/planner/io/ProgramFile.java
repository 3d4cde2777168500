package dev.symplan.planner.io;

import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.file.AtomicFile;
import java.nio.file.Path;

/** Programs as {@code .graph} files, whatever they were read from. */
public final class ProgramFile {
  private ProgramFile() {}

  /**
   * {@return the text of a program; {@link ProgramReader} makes the same program of it. Ranks that
   * run graphs of their own have them one below the other, each with its ranks}
   */
  public static String text(Program program) {
    return GraphPrinter.print(program);
  }

  /**
   * Writes a program, whole or not at all.
   *
   * @throws dev.symplan.ir.diag.CompileException when the file cannot be written
   */
  public static void write(Program program, Path file) {
    AtomicFile.write(file, text(program), "the graph");
  }
}
