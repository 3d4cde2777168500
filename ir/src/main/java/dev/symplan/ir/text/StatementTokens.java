package dev.symplan.ir.text;

import java.util.ArrayList;
import java.util.List;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.IntStream;
import org.antlr.v4.runtime.RuleContext;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.TokenSource;
import org.antlr.v4.runtime.TokenStream;
import org.antlr.v4.runtime.misc.Interval;

/** The tokens of one statement and an EOF, filled anew for each. */
final class StatementTokens implements TokenStream {
  private final TokenSource source;
  private final List<Token> tokens = new ArrayList<>();
  private int position;

  StatementTokens(TokenSource source) {
    this.source = source;
  }

  void clear() {
    tokens.clear();
    position = 0;
  }

  void add(Token token) {
    ((CommonToken) token).setTokenIndex(tokens.size());
    tokens.add(token);
  }

  /** {@return the number of tokens, the EOF included} */
  int count() {
    return tokens.size();
  }

  @Override
  public Token LT(int offset) {
    int at = offset > 0 ? position + offset - 1 : position + offset;
    return tokens.get(Math.min(Math.max(at, 0), tokens.size() - 1));
  }

  @Override
  public int LA(int offset) {
    return LT(offset).getType();
  }

  @Override
  public Token get(int index) {
    return tokens.get(index);
  }

  @Override
  public void consume() {
    if (position == tokens.size() - 1) {
      throw new IllegalStateException("cannot consume EOF");
    }
    position++;
  }

  @Override
  public int mark() {
    return -1;
  }

  @Override
  public void release(int marker) {}

  @Override
  public int index() {
    return position;
  }

  @Override
  public void seek(int index) {
    position = Math.min(index, tokens.size() - 1);
  }

  @Override
  public int size() {
    return tokens.size();
  }

  @Override
  public TokenSource getTokenSource() {
    return source;
  }

  @Override
  public String getSourceName() {
    return IntStream.UNKNOWN_SOURCE_NAME;
  }

  @Override
  public String getText(Interval interval) {
    var text = new StringBuilder();
    for (int i = interval.a; i <= interval.b; i++) {
      text.append(tokens.get(i).getText());
    }
    return text.toString();
  }

  @Override
  public String getText() {
    return getText(Interval.of(0, tokens.size() - 1));
  }

  @Override
  public String getText(RuleContext context) {
    return getText(context.getSourceInterval());
  }

  @Override
  public String getText(Token start, Token stop) {
    return getText(Interval.of(start.getTokenIndex(), stop.getTokenIndex()));
  }
}
