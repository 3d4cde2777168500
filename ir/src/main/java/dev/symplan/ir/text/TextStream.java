package dev.symplan.ir.text;

import org.antlr.v4.runtime.CharStream;
import org.antlr.v4.runtime.IntStream;
import org.antlr.v4.runtime.misc.Interval;

/**
 * A text as a lexer sees it, in UTF-16 units, without a copy of it.
 *
 * <p>ANTLR's lexers cache their decisions for ASCII only, and are a hundred times slower for other
 * characters. The grammars here treat all of those alike, so the lexer sees {@link #OTHER} for each
 * of them. The text of a token is the real one.
 */
final class TextStream extends MemoryStream implements CharStream {
  /** DEL: outside strings and comments no grammar allows it. */
  static final char OTHER = '\u007F';

  private final String name;
  private final String text;

  TextStream(String name, String text) {
    this.name = name;
    this.text = text;
  }

  @Override
  public int LA(int offset) {
    int at = at(offset);
    if (offset == 0 || at < 0 || at >= text.length()) {
      return IntStream.EOF;
    }
    char c = text.charAt(at);
    return c > OTHER ? OTHER : c;
  }

  @Override
  int end() {
    return text.length();
  }

  @Override
  public int size() {
    return text.length();
  }

  @Override
  public String getText(Interval interval) {
    int end = Math.min(interval.b + 1, text.length());
    return interval.a >= end ? "" : text.substring(interval.a, end);
  }

  @Override
  public String getSourceName() {
    return name;
  }
}
