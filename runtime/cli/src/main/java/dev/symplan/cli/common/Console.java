package dev.symplan.cli.common;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.planner.file.AtomicFile;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The streams that a command writes to.
 *
 * @param out results
 * @param err diagnostics and progress
 */
public record Console(PrintStream out, PrintStream err) {
  /** Control characters but tabs and line ends, and those that change the direction of text. */
  private static final Pattern UNPRINTABLE =
      Pattern.compile(
          "[\\p{Cntrl}\\x{80}-\\x{9f}\\x{200e}\\x{200f}\\x{202a}-\\x{202e}\\x{2066}-\\x{2069}&&[^\\n"
              + "\\t]]");

  /** Writes nothing. */
  public static Console silent() {
    var nowhere = new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
    return new Console(nowhere, nowhere);
  }

  public void print(String text) {
    out.print(printable(text));
  }

  /**
   * {@return a text without characters that a terminal would obey} Names come from files of
   * strangers.
   */
  static String printable(String text) {
    return UNPRINTABLE
        .matcher(text)
        .replaceAll(match -> "\\\\u%04x".formatted((int) match.group().charAt(0)));
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
    err.println(printable(line));
    err.flush();
  }

  /** Shows warnings, or errors. */
  public void warnings(List<Diagnostic> diagnostics) {
    diagnostics.forEach(diagnostic -> err.println(printable(diagnostic.render())));
  }
}
