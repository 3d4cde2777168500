package dev.symplan.cli;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The commands in docs/inspecting.md print what stands below them. */
class InspectingDocTest {
  private static final Path GRAPHS =
      Path.of(System.getProperty("symplan.shared", "../shared")).resolve("cases/plan");
  private static final Pattern WRITTEN = Pattern.compile("\\.(json|html)$");

  @TempDir private Path folder;

  @Test
  void saysWhatTheCommandsPrint() {
    assumeTrue(Files.isDirectory(GRAPHS), "the shared cases are not here");
    ConsolePage.check(
        Documents.ROOT.resolve("docs/inspecting.md"),
        word ->
            word.endsWith(".fx.txt")
                ? GRAPHS.resolve(word).toString()
                : WRITTEN.matcher(word).find() ? folder.resolve(word).toString() : word);
  }
}
