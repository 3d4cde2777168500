package dev.symplan.ir.diag;

import com.google.common.collect.ImmutableList;

/**
 * One message about an input.
 *
 * @param message the mistake, and what was expected; one line
 * @param hint the remedy; empty if there is nothing to say
 * @param notes further lines
 */
public record Diagnostic(
    Severity severity,
    DiagnosticCode code,
    Span span,
    String message,
    String hint,
    ImmutableList<String> notes) {

  /** The severity of a diagnostic. */
  public enum Severity {
    ERROR("error"),
    WARNING("warning");

    private final String word;

    Severity(String word) {
      this.word = word;
    }
  }

  private static final int MAX_LINE_SHOWN = 160;
  private static final int MAX_MESSAGE_SHOWN = 1000;

  public static Diagnostic error(DiagnosticCode code, Span span, String message, String hint) {
    return new Diagnostic(Severity.ERROR, code, span, message, hint, ImmutableList.of());
  }

  public static Diagnostic error(DiagnosticCode code, Span span, String message) {
    return error(code, span, message, "");
  }

  public static Diagnostic warning(DiagnosticCode code, Span span, String message, String hint) {
    return new Diagnostic(Severity.WARNING, code, span, message, hint, ImmutableList.of());
  }

  public boolean isError() {
    return severity == Severity.ERROR;
  }

  /**
   * {@return the message as people read it: location, code and message; the source line with a
   * caret below the offending text; notes; the hint. Several lines, no line end after the last}
   */
  public String render() {
    var out = new StringBuilder();
    out.append(span).append(": ").append(severity.word);
    out.append('[').append(code.text()).append("]: ").append(cut(message));
    if (span.line() > 0) {
      appendExcerpt(out);
    }
    for (var note : notes) {
      out.append("\n   note: ").append(cut(note));
    }
    if (!hint.isEmpty()) {
      out.append("\n   hint: ").append(cut(hint));
    }
    return out.toString();
  }

  private void appendExcerpt(StringBuilder out) {
    var line = span.file().line(span.line());
    int caret = Math.min(Math.max(span.column() - 1, 0), line.length());
    int length = Math.max(1, Math.min(span.length(), line.length() - caret));
    int from = 0;
    int to = line.length();
    if (line.length() > MAX_LINE_SHOWN) {
      from = Math.max(0, Math.min(caret - MAX_LINE_SHOWN / 2, line.length() - MAX_LINE_SHOWN));
      to = Math.min(line.length(), from + MAX_LINE_SHOWN);
      length = Math.max(1, Math.min(length, to - caret));
    }
    var prefix = from > 0 ? "…" : "";
    var number = Integer.toString(span.line());
    var shown = printable(line.substring(from, to));
    out.append("\n ").append(number).append(" | ").append(prefix).append(shown);
    out.append(to < line.length() ? "…" : "");
    out.append("\n ").append(" ".repeat(number.length())).append(" | ");
    out.append(" ".repeat(prefix.length() + caret - from)).append("^".repeat(length));
  }

  /** Names of an input can be of any length. */
  private static String cut(String text) {
    return text.length() > MAX_MESSAGE_SHOWN ? text.substring(0, MAX_MESSAGE_SHOWN) + "…" : text;
  }

  private static String printable(String text) {
    var out = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      out.append(c == '\t' ? ' ' : Character.isISOControl(c) ? '\uFFFD' : c);
    }
    return out.toString();
  }

  @Override
  public String toString() {
    return render();
  }
}
