package dev.symplan.ir.diag;

import com.google.common.collect.ImmutableList;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/** An input is wrong. The diagnostics say how; the message is all of them, rendered. */
public final class CompileException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient ImmutableList<Diagnostic> diagnostics;

  public CompileException(List<Diagnostic> diagnostics) {
    super(diagnostics.stream().map(Diagnostic::render).collect(Collectors.joining("\n")));
    this.diagnostics = ImmutableList.copyOf(diagnostics);
  }

  public CompileException(Diagnostic diagnostic) {
    this(List.of(diagnostic));
  }

  /**
   * {@return that a file or folder is wrong as a whole}
   *
   * @param hint the remedy; empty if there is nothing to say
   */
  public static CompileException ofFile(
      DiagnosticCode code, Path file, String message, String hint) {
    return new CompileException(
        Diagnostic.error(code, Span.ofFile(new SourceFile(file.toString(), "")), message, hint));
  }

  /** {@return errors, and the warnings that came before them} */
  public ImmutableList<Diagnostic> diagnostics() {
    return diagnostics;
  }
}
