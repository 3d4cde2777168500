package dev.symplan.samples;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Compiles the Java code of README and docs, with the imports of the samples, and runs the README's
 * program.
 */
class DocumentedJavaTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final Pattern BLOCK =
      Pattern.compile("^```java\\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);

  /** Imports of fragments that neither {@link QuickStart} nor {@link CustomOp} has. */
  private static final String IMPORTS =
      """
      import dev.symplan.ir.aten.BuiltinOps;
      import dev.symplan.ir.op.Library;
      import dev.symplan.runtime.SessionOptions;
      import dev.symplan.runtime.Weights;
      import java.time.Duration;
      import java.util.List;
      """;

  @TempDir private Path folder;

  record Block(Path page, String text) {
    @Override
    public String toString() {
      return "%s: %s".formatted(page.getFileName(), text);
    }
  }

  static List<Block> blocks() throws IOException {
    try (var docs = Files.list(ROOT.resolve("docs"))) {
      return Stream.concat(Stream.of(ROOT.resolve("README.md")), docs.sorted())
          .filter(page -> page.toString().endsWith(".md"))
          .flatMap(DocumentedJavaTest::blocks)
          .toList();
    }
  }

  private static Stream<Block> blocks(Path page) {
    try {
      return BLOCK
          .matcher(Files.readString(page))
          .results()
          .map(block -> new Block(page, block.group(1)));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @MethodSource("blocks")
  void compiles(Block block) throws IOException {
    compile(block.text());
  }

  @Test
  void theProgramOfTheReadmeRuns() throws Exception {
    var sample = ROOT.resolve("samples/tp_mlp.graph").toAbsolutePath();
    var program = blocks().getFirst().text();
    assertThat(program).contains("\"samples/tp_mlp.graph\"");
    compile(program.replace("samples/tp_mlp.graph", sample.toString()));
    var urls = new URL[] {folder.toUri().toURL()};
    try (var loader = new URLClassLoader(urls, DocumentedJavaTest.class.getClassLoader())) {
      var main = loader.loadClass("Documented").getDeclaredMethod("main");
      main.setAccessible(true);
      main.invoke(null);
    }
  }

  private void compile(String program) throws IOException {
    var file =
        Files.writeString(
            folder.resolve("Documented.java"),
            """
            %s%s
            class Documented {
              static dev.symplan.planner.plan.Plan plan;
              static Backend backend;
              static String source;
              static void main() {
            %s  }
            }
            """
                .formatted(IMPORTS, imports(), program));
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
    try (var files = Files.list(ROOT.resolve("samples/src/main/java/dev/symplan/samples"))) {
      return files
          .flatMap(DocumentedJavaTest::lines)
          .filter(line -> line.startsWith("import "))
          .distinct()
          .collect(Collectors.joining("\n"));
    }
  }

  private static Stream<String> lines(Path file) {
    try {
      return Files.readAllLines(file).stream();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
