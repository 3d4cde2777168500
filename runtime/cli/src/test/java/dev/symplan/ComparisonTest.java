package dev.symplan;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Each row of the comparison names the test that shows what it says of Symplan. */
class ComparisonTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", "../.."));
  private static final int COLUMNS = 8;
  private static final Pattern NAME = Pattern.compile("`(\\w+)#(\\w+)`");
  private static final Pattern WORD = Pattern.compile("\\w+");

  /** Where a method begins, as the formatter writes it. */
  private static final Pattern HEADER =
      Pattern.compile("(?m)^ {2}(?!@)[^\\s=;/*][^=;\\n]*?(\\w+)\\(");

  /** The rows of the tables whose last column is called {@code test}. */
  private static List<List<String>> rows() throws IOException {
    var rows = new ArrayList<List<String>>();
    boolean inside = false;
    for (var line : Files.readAllLines(ROOT.resolve("docs/comparison.md"))) {
      if (!line.startsWith("|")) {
        inside = false;
        continue;
      }
      var cells =
          Splitter.on('|').trimResults().splitToList(line.substring(1, line.lastIndexOf('|')));
      if (cells.getLast().equals("test")) {
        inside = true;
      } else if (inside && !cells.getFirst().startsWith("---")) {
        rows.add(cells);
      }
    }
    return rows;
  }

  /** The text of each test class, by its name. */
  private static Map<String, String> tests() throws IOException {
    var texts = new HashMap<String, String>();
    var sources = Path.of("src/test/java");
    for (var module : List.of("ir", "planner", "codegen", "runtime")) {
      try (var files = Files.walk(ROOT.resolve(module))) {
        for (var file :
            files
                .filter(f -> f.toString().contains(sources.toString()))
                .filter(f -> f.toString().endsWith("Test.java"))
                .toList()) {
          var name = String.valueOf(file.getFileName()).replace(".java", "");
          texts.merge(name, Files.readString(file), String::concat);
        }
      }
    }
    return texts;
  }

  @Test
  void everyRowNamesATestThatChecksAndAlwaysRuns() throws IOException {
    var tests = tests();
    var rows = rows();
    assertThat(rows).hasSizeGreaterThan(40);
    for (var row : rows) {
      assertThat(row).as("%s", row).hasSize(COLUMNS).noneMatch(String::isEmpty);
      assertThat(row).as("'no', or '?' where it is not known").doesNotContain("–", "-");
      var names = NAME.matcher(row.getLast());
      int found = 0;
      while (names.find()) {
        found++;
        check(names.group(), tests.getOrDefault(names.group(1), ""), names.group(2));
      }
      assertThat(found).as("tests of: %s", row.getFirst()).isPositive();
      assertThat(row.getLast().replaceAll(NAME.pattern(), "").replace(",", "")).isBlank();
    }
  }

  private static void check(String name, String text, String method) {
    var methods = methods(text);
    var test = methods.getOrDefault(method, "");
    assertThat(test).as("%s is a test", name).containsPattern("@(Parameterized)?Test\\b");
    var reached = reached(method, methods);
    assertThat(reached).as("%s checks", name).contains("assert");
    // Spin is not everywhere, and the documentation says so.
    assertThat(reached)
        .as("%s always runs", name)
        .doesNotContain("assumeTrue(", "assumeFalse(", "@Disabled", "@Enabled");
  }

  /** {@return the text of each method of a class, with its annotations, by name} */
  private static Map<String, String> methods(String text) {
    var methods = new HashMap<String, String>();
    for (var part : Splitter.on("\n  }\n").split(text)) {
      var header = HEADER.matcher(part);
      if (header.find()) {
        methods.merge(header.group(1), part, String::concat);
      }
    }
    return methods;
  }

  /** {@return the text of a method and of all of its class that it names} */
  private static String reached(String method, Map<String, String> methods) {
    var reached = new LinkedHashSet<String>();
    var open = new ArrayDeque<>(List.of(method));
    while (!open.isEmpty()) {
      var next = open.pop();
      if (methods.containsKey(next) && reached.add(next)) {
        WORD.matcher(methods.getOrDefault(next, "")).results().forEach(w -> open.add(w.group()));
      }
    }
    return reached.stream()
        .map(name -> methods.getOrDefault(name, ""))
        .collect(Collectors.joining());
  }

  @Test
  void noCapabilityComesTwice() throws IOException {
    var seen = new HashSet<String>();
    for (var row : rows()) {
      assertThat(seen.add(row.getFirst())).as(row.getFirst()).isTrue();
    }
  }
}
