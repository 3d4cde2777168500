package dev.symplan;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Each row of the comparison names the test that shows what it says of Symplan. */
class ComparisonTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", "../.."));
  private static final int COLUMNS = 8;
  private static final Pattern NAME = Pattern.compile("`(\\w+)#(\\w+)`");

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
    for (var module :
        new String[] {
          "ir", "planner", "codegen", "runtime/core", "runtime/cuda", "runtime/cli", "runtime/bench"
        }) {
      try (var files = Files.walk(ROOT.resolve(module).resolve("src/test/java"))) {
        for (var file : files.filter(f -> f.toString().endsWith("Test.java")).toList()) {
          var name = String.valueOf(file.getFileName()).replace(".java", "");
          texts.merge(name, Files.readString(file), String::concat);
        }
      }
    }
    return texts;
  }

  @Test
  void everyRowNamesATestThatIsThere() throws IOException {
    var tests = tests();
    var rows = rows();
    assertThat(rows).hasSizeGreaterThan(40);
    for (var row : rows) {
      assertThat(row).as("%s", row).hasSize(COLUMNS).noneMatch(String::isEmpty);
      var names = NAME.matcher(row.getLast());
      int found = 0;
      while (names.find()) {
        found++;
        assertThat(isTest(tests.getOrDefault(names.group(1), ""), names.group(2)))
            .as("%s is a test", names.group())
            .isTrue();
      }
      assertThat(found).as("tests of: %s", row.getFirst()).isPositive();
      assertThat(row.getLast().replaceAll(NAME.pattern(), "").replace(",", "")).isBlank();
    }
  }

  /** Whether a class has a method so called, with an annotation that makes it a test. */
  private static boolean isTest(String text, String method) {
    int at = text.indexOf("void " + method + "(");
    var before = text.substring(text.lastIndexOf("\n  }\n", Math.max(0, at)) + 1, Math.max(0, at));
    return at >= 0 && (before.contains("@Test") || before.contains("@ParameterizedTest"));
  }

  @Test
  void noCapabilityComesTwice() throws IOException {
    var seen = new HashSet<String>();
    for (var row : rows()) {
      assertThat(seen.add(row.getFirst())).as(row.getFirst()).isTrue();
    }
  }
}
