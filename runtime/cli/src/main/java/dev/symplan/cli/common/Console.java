package dev.symplan.cli.common;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.planner.file.AtomicFile;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * Where a command writes.
 *
 * @param out results
 * @param err diagnostics and progress
 */
public record Console(PrintStream out, PrintStream err) {

  /** Writes nothing. */
  public static Console silent() {
    var nowhere = new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
    return new Console(nowhere, nowhere);
  }

  public void print(String text) {
    out.print(text);
  }

  /**
   * Prints a result, or writes it to a file.
   *
   * @param what a name for the result in errors
   */
  public void result(Optional<Path> file, String text, String what) {
    if (file.isPresent()) {
      AtomicFile.write(file.get(), text, what);
      progress("written to " + file.get());
    } else {
      print(text);
    }
  }

  /** Says something at once, as what follows may take long. */
  public void progress(String line) {
    err.println(line);
    err.flush();
  }

  public void warnings(List<Diagnostic> diagnostics) {
    diagnostics.forEach(diagnostic -> err.println(diagnostic.render()));
  }
}
