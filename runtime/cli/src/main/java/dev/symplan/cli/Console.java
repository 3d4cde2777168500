package dev.symplan.cli;

import dev.symplan.ir.diag.Diagnostic;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Where a command writes.
 *
 * @param out results
 * @param err diagnostics and progress
 */
record Console(PrintStream out, PrintStream err) {

  /** Writes nothing. */
  static Console silent() {
    var nowhere = new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
    return new Console(nowhere, nowhere);
  }

  void print(String text) {
    out.print(text);
  }

  void progress(String line) {
    err.println(line);
  }

  void warnings(List<Diagnostic> diagnostics) {
    diagnostics.forEach(diagnostic -> err.println(diagnostic.render()));
  }
}
