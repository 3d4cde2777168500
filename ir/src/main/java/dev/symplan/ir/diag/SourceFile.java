package dev.symplan.ir.diag;

/**
 * A text that was read, so that messages can show the line they speak of.
 *
 * @param name the path as the user gave it, or what stands for one ({@code <stdin>})
 */
public record SourceFile(String name, String text) {

  /** For values that no file gave. */
  public static final SourceFile NONE = new SourceFile("<built>", "");

  /** {@return the text of a line without its end; empty if the file has no such line} */
  public String line(int line) {
    int start = 0;
    for (int i = 1; i < line; i++) {
      int end = text.indexOf('\n', start);
      if (end < 0) {
        return "";
      }
      start = end + 1;
    }
    int end = text.indexOf('\n', start);
    var result = end < 0 ? text.substring(start) : text.substring(start, end);
    return result.endsWith("\r") ? result.substring(0, result.length() - 1) : result;
  }

  @Override
  public String toString() {
    return name;
  }
}
