package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Multimaps;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** Limits that keep the code and its map readable. */
class SourceSizesTest {
  private static final int MAX_LINES_OF_A_CLASS = 450;
  private static final int MAX_CLASSES_OF_A_PACKAGE = 30;
  private static final int MAX_LINES_OF_THE_MAP = 150;
  private static final int MAX_LINE = 120;
  private static final String INFO = "package-info.java";

  private static ImmutableList<Path> sources() throws IOException {
    try (var files = Files.walk(Documents.ROOT)) {
      return files
          .filter(file -> file.toString().matches(".*/src/main/java/.*\\.java"))
          .sorted()
          .collect(ImmutableList.toImmutableList());
    }
  }

  @Test
  void classesAreShort() throws IOException {
    for (var file : sources()) {
      assertThat(Files.readAllLines(file))
          .as("%s", file)
          .hasSizeLessThanOrEqualTo(MAX_LINES_OF_A_CLASS);
    }
  }

  @Test
  void largePackagesSayWhy() throws IOException {
    var packages = Multimaps.index(sources(), Path::getParent);
    assertThat(packages.keySet()).hasSizeGreaterThan(40);
    for (var folder : packages.keySet()) {
      if (packages.get(folder).size() - 1 > MAX_CLASSES_OF_A_PACKAGE) {
        assertThat(Files.readString(folder.resolve(INFO)).replaceAll("\\s+\\*\\s+", " "))
            .as("the reason for more than %s classes", MAX_CLASSES_OF_A_PACKAGE)
            .containsPattern("more than (thirty|fifty)");
      }
    }
  }

  @Test
  void theMapIsShort() {
    var lines = Documents.text(Documents.ROOT.resolve("docs/architecture.md")).lines().toList();
    assertThat(lines).hasSizeLessThanOrEqualTo(MAX_LINES_OF_THE_MAP);
    assertThat(lines).allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(MAX_LINE));
  }
}
