package dev.symplan.planner.io;

import dev.symplan.ir.Program;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.planner.CompileOptions;
import java.nio.file.Path;
import java.util.function.Consumer;

/** Reads every form of input into a program. */
public final class ProgramReader {
  private ProgramReader() {}

  /** {@return the program} */
  public static Program read(Path input, CompileOptions options, Consumer<Diagnostic> warnings) {
    throw new UnsupportedOperationException("not yet");
  }
}
