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

  /**
   * {@return the next token} Most of a text is names and brackets, which are found here without
   * ANTLR's tables; they are what the grammar says of them.
   */
  @Override
  public Token nextToken() {
    var token = simple();
    if (token instanceof CommonToken brace) {
      if (brace.getType() == RBRACE && brace.getCharPositionInLine() == 0) {
        brace.setType(CLOSE_BODY);
      } else if (brace.getType() == LBRACE && opensBody(brace)) {
        brace.setType(OPEN_BODY);
      }
    }
    return token;
  }

  private Token simple() {
    int from = _input.index();
    int at = from;
    while (at < text.length() && text.charAt(at) == ' ') {
      at++;
    }
    int start = at;
    int type = at < text.length() ? punctuation(text.charAt(at)) : Token.INVALID_TYPE;
    if (type == Token.INVALID_TYPE) {
      at = endOfName(start);
      type = NAME;
    } else {
      at++;
    }
    if (at == start) {
      return super.nextToken();
    }
    int column = getInterpreter().getCharPositionInLine();
    var token =
        _factory.create(
            _tokenFactorySourcePair,
            type,
            null,
            Token.DEFAULT_CHANNEL,
            start,
            at - 1,
            getInterpreter().getLine(),
            column + start - from);
    _input.seek(at);
    getInterpreter().setCharPositionInLine(column + at - from);
    return token;
  }

  private static int punctuation(char c) {
    return switch (c) {
      case '(' -> LPAREN;
      case ')' -> RPAREN;
      case '[' -> LBRACKET;
      case ']' -> RBRACKET;
      case '{' -> LBRACE;
      case '}' -> RBRACE;
      case ',' -> COMMA;
      case '=' -> EQUALS;
      default -> Token.INVALID_TYPE;
    };
  }

  /** {@return where the name ends that begins at some place; that place if none does} */
  private int endOfName(int start) {
    int at = start + (is(start, '%') ? 1 : 0);
    if (at == text.length() || !isLetter(text.charAt(at))) {
      return start;
    }
    while (at < text.length() && isInName(text.charAt(at))) {
      at++;
    }
    while (is(at, '#') && at + 1 < text.length() && isDigit(text.charAt(at + 1))) {
      at += 2;
      while (at < text.length() && isDigit(text.charAt(at))) {
        at++;
      }
    }
    return at;
  }

  private boolean is(int at, char c) {
    return at < text.length() && text.charAt(at) == c;
  }

  private static boolean isLetter(char c) {
    return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_';
  }

  private static boolean isDigit(char c) {
    return c >= '0' && c <= '9';
  }

  private static boolean isInName(char c) {
    return isLetter(c) || isDigit(c) || c == '.' || c == '-';
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
