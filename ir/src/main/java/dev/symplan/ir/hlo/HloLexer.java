package dev.symplan.ir.hlo;

import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.Token;

/**
 * Tells the braces around a computation's body from all others: the one opens at the end of a line
 * that is not indented, the other closes as the first character of its line.
 */
final class HloLexer extends HloTextLexer {
  private final String text;

  HloLexer(String text) {
    super(CharStreams.fromString(""));
    this.text = text;
  }

  @Override
  public Token nextToken() {
    var token = super.nextToken();
    if (token instanceof CommonToken brace) {
      if (brace.getType() == RBRACE && brace.getCharPositionInLine() == 0) {
        brace.setType(CLOSE_BODY);
      } else if (brace.getType() == LBRACE && opensBody(brace)) {
        brace.setType(OPEN_BODY);
      }
    }
    return token;
  }

  private boolean opensBody(CommonToken brace) {
    char first = text.charAt(brace.getStartIndex() - brace.getCharPositionInLine());
    if (first == ' ' || first == '\t') {
      return false;
    }
    int at = brace.getStartIndex() + 1;
    while (at < text.length() && " \t\r".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    return at == text.length() || text.charAt(at) == '\n';
  }
}
