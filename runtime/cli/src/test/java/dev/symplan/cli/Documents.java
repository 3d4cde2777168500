package dev.symplan.cli;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The pages that people read: those at the top of the project, and those of docs. */
final class Documents {
  static final Path ROOT = Path.of(System.getProperty("symplan.root", "../.."));
  private static final Pattern CONTINUED = Pattern.compile("\\\\\\n\\s*");
  private static final Pattern FENCE = Pattern.compile(" *```(.*)");
  private static final Pattern INLINE = Pattern.compile("`([^`\n]+)`");
  private static final String INDENT = "    ";

  private Documents() {}

  /** {@return all pages} */
  static List<Path> pages() {
    return Stream.concat(markdown(ROOT), docs().stream()).toList();
  }

  /** {@return the pages of docs} */
  static List<Path> docs() {
    return markdown(ROOT.resolve("docs")).toList();
  }

  private static Stream<Path> markdown(Path folder) {
    try (var files = Files.list(folder)) {
      return files.filter(file -> file.toString().endsWith(".md")).sorted().toList().stream();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String text(Path page) {
    try {
      return Files.readString(page);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** {@return the lines of code of a page, without what commands print; continued lines as one} */
  static ImmutableList<String> code(Path page) {
    var lines = ImmutableList.<String>builder();
    boolean inside = false;
    boolean console = false;
    for (var line : Splitter.on('\n').split(CONTINUED.matcher(text(page)).replaceAll(" "))) {
      var fence = FENCE.matcher(line);
      if (fence.matches()) {
        inside = !inside;
        console = fence.group(1).equals("console");
      } else if (inside ? !console || line.startsWith("$ ") : line.startsWith(INDENT)) {
        lines.add(line.strip().replaceFirst("^\\$ ", ""));
      }
    }
    return lines.build();
  }

  /** {@return the code within sentences and tables of a page} */
  static List<String> inline(Path page) {
    var found = new ArrayList<String>();
    boolean inside = false;
    for (var line : Splitter.on('\n').split(text(page))) {
      if (FENCE.matcher(line).matches()) {
        inside = !inside;
      } else if (!inside && !line.startsWith(INDENT)) {
        INLINE.matcher(line).results().forEach(code -> found.add(code.group(1)));
      }
    }
    return found;
  }
}
