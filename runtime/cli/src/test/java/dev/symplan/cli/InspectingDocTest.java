package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.testkit.Golden;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The commands in docs/inspecting.md print what stands below them. */
class InspectingDocTest {
  private static final Path DOC =
      Path.of(System.getProperty("symplan.root", "../.."), "docs", "inspecting.md");
  private static final Path GRAPHS =
      Path.of(System.getProperty("symplan.shared", "../shared")).resolve("cases/plan");
  private static final Pattern WRITTEN = Pattern.compile("\\.(json|html)$");
  private static final String OPEN = "```console";
  private static final String CLOSE = "```";
  private static final String PROMPT = "$ symplan ";

  @TempDir private Path folder;

  @Test
  void saysWhatTheCommandsPrint() throws IOException {
    assumeTrue(Files.isDirectory(GRAPHS), "the shared cases are not here");
    var written = new ArrayList<String>();
    boolean inside = false;
    int commands = 0;
    for (var line : Files.readString(DOC).lines().toList()) {
      if (line.equals(OPEN)) {
        inside = true;
      } else if (line.equals(CLOSE)) {
        inside = false;
      } else if (inside && !line.startsWith(PROMPT)) {
        // What was printed when it was written.
        continue;
      }
      written.add(line);
      if (inside && line.startsWith(PROMPT)) {
        written.addAll(output(line.substring(PROMPT.length())));
        commands++;
      }
    }
    assertThat(commands).isPositive();
    Golden.checkFile(DOC, String.join("\n", written) + "\n");
  }

  private List<String> output(String command) {
    var parts = command.split(" \\| head -");
    var words =
        List.of(parts[0].split(" ")).stream()
            .map(
                word ->
                    word.endsWith(".fx.txt")
                        ? GRAPHS.resolve(word).toString()
                        : WRITTEN.matcher(word).find() ? folder.resolve(word).toString() : word)
            .toList();
    var out = new ByteArrayOutputStream();
    try (var o = new PrintStream(out, true, StandardCharsets.UTF_8);
        var e = new PrintStream(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8)) {
      int code = Main.run(words.toArray(String[]::new), o, e);
      assertThat(code).as(command).isEqualTo(words.getFirst().equals("diff") ? 1 : 0);
    }
    long most = parts.length > 1 ? Long.parseLong(parts[1]) : Long.MAX_VALUE;
    return out.toString(StandardCharsets.UTF_8).lines().limit(most).collect(Collectors.toList());
  }
}
