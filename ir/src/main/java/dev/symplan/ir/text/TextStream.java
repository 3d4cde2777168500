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
final class TextStream implements CharStream {
  /** DEL: outside strings and comments no grammar allows it. */
  static final char OTHER = '\u007F';

  private final String name;
  private final String text;
  private int position;

  TextStream(String name, String text) {
    this.name = name;
    this.text = text;
  }

  @Override
  public void consume() {
    if (position == text.length()) {
      throw new IllegalStateException("cannot consume EOF");
    }
    position++;
  }

  @Override
  public int LA(int offset) {
    int at = offset > 0 ? position + offset - 1 : position + offset;
    if (offset == 0 || at < 0 || at >= text.length()) {
      return IntStream.EOF;
    }
    char c = text.charAt(at);
    return c > OTHER ? OTHER : c;
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
    position = Math.min(index, text.length());
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
