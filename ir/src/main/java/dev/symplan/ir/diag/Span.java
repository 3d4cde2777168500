package dev.symplan.ir.diag;

/**
 * A stretch of text on one line.
 *
 * @param line 1-based; 0 for the file as a whole
 * @param column 1-based, in UTF-16 units
 * @param length in UTF-16 units, at least 1
 */
public record Span(SourceFile file, int line, int column, int length) {

  /** For values that no file gave. */
  public static final Span NONE = new Span(SourceFile.NONE, 0, 0, 1);

  public static Span ofFile(SourceFile file) {
    return new Span(file, 0, 0, 1);
  }

  /** {@return {@code file:line:column}, as far as known} */
  @Override
  public String toString() {
    return line == 0 ? file.name() : file.name() + ":" + line + ":" + column;
  }

  /** {@return {@code file:line}, as far as known, with the file's folders left out} */
  public String shortForm() {
    var path = file.name().replace('\\', '/');
    var name = path.substring(path.lastIndexOf('/') + 1);
    return line == 0 ? name : name + ":" + line;
  }
}
