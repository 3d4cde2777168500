import com.google.googlejavaformat.java.Formatter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Formats every Java source of the project, or with {@code --check} fails where one is not. */
final class Format {
  public static void main(String[] args) throws Exception {
    boolean check = List.of(args).contains("--check");
    List<Path> wrong;
    try (Stream<Path> files = Files.walk(Path.of(""))) {
      wrong =
          files
              .filter(f -> f.toString().endsWith(".java"))
              .filter(f -> f.toString().contains("src"))
              .filter(f -> !f.toString().contains("target"))
              .parallel()
              .filter(f -> changes(f, check))
              .sorted()
              .toList();
    }
    if (check && !wrong.isEmpty()) {
      wrong.forEach(f -> System.err.println("not formatted: " + f));
      System.err.println("format the sources with: mvn -N validate exec:exec@format -Dfast");
      System.exit(1);
    }
  }

  private static boolean changes(Path file, boolean check) {
    try {
      String before = Files.readString(file);
      String after = new Formatter().formatSourceAndFixImports(before);
      if (!check && !after.equals(before)) {
        Files.writeString(file, after);
      }
      return !after.equals(before);
    } catch (IOException | com.google.googlejavaformat.java.FormatterException e) {
      throw new IllegalStateException(file + ": " + e.getMessage(), e);
    }
  }
}
