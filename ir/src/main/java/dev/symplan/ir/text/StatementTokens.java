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
final class StatementTokens extends MemoryStream implements TokenStream {
  private final TokenSource source;
  private final List<Token> tokens = new ArrayList<>();

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
    return tokens.get(Math.clamp(at(offset), 0, end()));
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
  int end() {
    return tokens.size() - 1;
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
