package dev.symplan.ir.diag;

import com.google.common.collect.ImmutableList;
import java.util.ArrayList;
import java.util.List;

/** Collects messages while an input is read, so that one run reports several errors. */
public final class DiagnosticSink {

  /** After so many errors the rest is likely to follow from them. */
  public static final int MAX_ERRORS = 20;

  private final List<Diagnostic> diagnostics = new ArrayList<>();
  private int errors;

  /**
   * Adds a message.
   *
   * @throws CompileException when this is the {@value #MAX_ERRORS}th error
   */
  public void report(Diagnostic diagnostic) {
    diagnostics.add(diagnostic);
    if (diagnostic.isError() && ++errors >= MAX_ERRORS) {
      throw new CompileException(diagnostics);
    }
  }

  public boolean hasErrors() {
    return errors > 0;
  }

  public ImmutableList<Diagnostic> diagnostics() {
    return ImmutableList.copyOf(diagnostics);
  }

  /**
   * Ends the reading.
   *
   * @throws CompileException when there was an error
   */
  public void throwIfErrors() {
    if (hasErrors()) {
      throw new CompileException(diagnostics);
    }
  }
}
