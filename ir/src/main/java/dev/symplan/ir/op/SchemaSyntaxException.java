package dev.symplan.ir.op;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;

/** A schema text that is malformed; the message shows where. */
public final class SchemaSyntaxException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  private final String problem;
  private final String hint;
  private final int start;
  private final int length;

  /**
   * @param start the offset of the wrong part in the schema text
   */
  SchemaSyntaxException(String text, int start, int length, String problem, String hint) {
    super(render(text, start, length, problem, hint));
    this.problem = problem;
    this.hint = hint;
    this.start = start;
    this.length = length;
  }

  private static String render(String text, int start, int length, String problem, String hint) {
    int lineStart = text.lastIndexOf('\n', start - 1) + 1;
    int line = 1 + (int) text.substring(0, lineStart).chars().filter(c -> c == '\n').count();
    var span = new Span(new SourceFile("<schema>", text), line, start - lineStart + 1, length);
    return Diagnostic.error(DiagnosticCode.BAD_SCHEMA, span, problem, hint).render();
  }

  /** {@return the mistake, without the location} */
  public String problem() {
    return problem;
  }

  /** {@return the remedy; may be empty} */
  public String hint() {
    return hint;
  }

  /** {@return where in the schema text the wrong part starts, in UTF-16 units} */
  public int start() {
    return start;
  }

  /** {@return the length of the wrong part, at least 1} */
  public int length() {
    return length;
  }
}
