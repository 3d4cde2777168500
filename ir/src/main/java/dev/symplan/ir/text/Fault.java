package dev.symplan.ir.text;

import dev.symplan.ir.diag.DiagnosticCode;
import org.antlr.v4.runtime.Token;

/** An error in a statement that the grammar does not show; {@code hint} may be empty. */
record Fault(DiagnosticCode code, Token at, String message, String hint) {

  static Fault syntax(Token at, String message) {
    return syntax(at, message, "");
  }

  static Fault syntax(Token at, String message, String hint) {
    return new Fault(DiagnosticCode.SYNTAX, at, message, hint);
  }

  /** {@return the fault of a token that no grammar allows, in this text} */
  static Fault invalid(Token token, String text) {
    char first = token.getText().charAt(0);
    if (first == '"' || first == '\'') {
      return syntax(token, "the string is not closed on its line", "end it with " + first);
    }
    if (text.startsWith("...", token.getStartIndex())) {
      return syntax(token, "the text is shortened here", "copy all of it");
    }
    int codePoint = text.codePointAt(token.getStartIndex());
    var number = "U+%04X".formatted(codePoint);
    return syntax(
        token,
        "unexpected character "
            + (Character.isISOControl(codePoint) || Character.isWhitespace(codePoint)
                ? number
                : codePoint < TextStream.OTHER
                    ? "'%c'".formatted(codePoint)
                    : "'%c' (%s)".formatted(codePoint, number)));
  }
}
