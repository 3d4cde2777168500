package dev.symplan.samples;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Java in the README compiles, with the imports of {@link QuickStart}. */
class ReadmeTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final String OPEN = "```java\n";

  @TempDir private Path folder;

  @Test
  void itsJavaCompiles() throws IOException {
    var readme = Files.readString(ROOT.resolve("README.md"));
    assertThat(readme).containsOnlyOnce(OPEN);
    int start = readme.indexOf(OPEN) + OPEN.length();
    var program = readme.substring(start, readme.indexOf("```", start));
    var file =
        Files.writeString(
            folder.resolve("Readme.java"),
            "%s\nclass Readme {\n  static void main() {\n%s  }\n}\n".formatted(imports(), program));

    var said = new ByteArrayOutputStream();
    int code =
        requireNonNull(ToolProvider.getSystemJavaCompiler(), "a JDK is needed")
            .run(
                null,
                said,
                said,
                "-d",
                folder.toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "-proc:none",
                file.toString());

    assertThat(code).as(said.toString(StandardCharsets.UTF_8)).isZero();
  }

  private static String imports() throws IOException {
    var source =
        ROOT.resolve("samples/src/main/java")
            .resolve(QuickStart.class.getName().replace('.', '/') + ".java");
    try (var lines = Files.lines(source)) {
      return lines.filter(line -> line.startsWith("import ")).collect(Collectors.joining("\n"));
    }
  }
}
