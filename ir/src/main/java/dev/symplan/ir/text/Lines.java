package dev.symplan.ir.text;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;

/** A text by its lines, as far as that takes no lexer. */
final class Lines {
  private final SourceFile file;
  private final String text;

  Lines(SourceFile file) {
    this.file = file;
    this.text = file.text();
  }

  /** {@return the offset of the line feed that ends the line, or of the text's end} */
  int end(int start) {
    int end = text.indexOf('\n', start);
    return end < 0 ? text.length() : end;
  }

  /** {@return the offset of the first character that is not a space or tab} */
  int skipBlanks(int start, int end) {
    int at = start;
    while (at < end && (text.charAt(at) == ' ' || text.charAt(at) == '\t')) {
      at++;
    }
    return at;
  }

  /** {@return whether a stretch that ends with its line holds nothing but a carriage return} */
  boolean isEmpty(int start, int end) {
    return start == end || (start == end - 1 && text.charAt(start) == '\r');
  }

  boolean isComment(int start, int end) {
    return start < end && text.charAt(start) == '#';
  }

  String comment(int start, int end) {
    return text.substring(start, end).stripTrailing();
  }

  /** {@return whether the line starts with a word, or ends a frame, not deeper than indent} */
  boolean startsStatement(int lineStart, int indent) {
    int at = skipBlanks(lineStart, text.length());
    if (at == text.length() || at - lineStart > indent) {
      return false;
    }
    char c = text.charAt(at);
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '%' || c == '}';
  }

  /**
   * {@return the location of a stretch of the text}
   *
   * @param lineStart the offset of a line at or above it
   * @param line that line's number
   */
  Span span(int lineStart, int line, int offset, int length) {
    int start = lineStart;
    int number = line;
    for (int end = end(start); end < offset; end = end(start)) {
      start = end + 1;
      number++;
    }
    return new Span(file, number, offset - start + 1, length);
  }
}
