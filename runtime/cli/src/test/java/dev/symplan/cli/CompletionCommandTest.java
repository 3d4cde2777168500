package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.cli.common.ExitCode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("changes the default locale")
class CompletionCommandTest {
  @TempDir private Path folder;

  /** The words that Bash offers after some words, of which the last one is to be completed. */
  private List<String> offered(String... words) throws IOException, InterruptedException {
    var out = new ByteArrayOutputStream();
    try (var stream = new PrintStream(out, false, StandardCharsets.UTF_8)) {
      var before = Locale.getDefault(Locale.Category.FORMAT);
      // As main does: picocli numbers its variables with the digits of the locale.
      Locale.setDefault(Locale.Category.FORMAT, Locale.ROOT);
      int code = Main.run(new String[] {"completion"}, stream, stream);
      Locale.setDefault(Locale.Category.FORMAT, before);
      assertThat(code).isEqualTo(ExitCode.OK);
    }
    var script = Files.write(folder.resolve("completion.bash"), out.toByteArray());
    var ask =
        """
        source "$1" || exit 1
        # Only works for a key that was pressed.
        compopt() { :; }
        shift
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        "$(complete -p symplan | sed 's/.* -F \\([^ ]*\\) .*/\\1/')"
        printf '%s\\n' "${COMPREPLY[@]}"
        """;
    var command = new ArrayList<>(List.of("bash", "-c", ask, "ask", script.toString()));
    command.addAll(List.of(words));
    var process = new ProcessBuilder(command).redirectErrorStream(true).start();
    var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(20, TimeUnit.SECONDS)).as(text).isTrue();
    assertThat(process.exitValue()).as(text).isZero();
    return text.lines().map(String::strip).toList();
  }

  @Test
  void completesCommands() throws Exception {
    assertThat(offered("symplan", "co"))
        .containsExactlyInAnyOrder("compile", "compare-xla", "completion");
    assertThat(offered("symplan", "")).contains("compile", "run", "bench", "doctor", "version");
  }

  @Test
  void completesOptionsOfCommands() throws Exception {
    assertThat(offered("symplan", "compile", "--ba")).containsExactly("--backend");
    assertThat(offered("symplan", "bench", "graph", "--product")).contains("--product-algorithms");
  }

  @Test
  void completesValuesOfOptions() throws Exception {
    assertThat(offered("symplan", "compile", "--target", "h100")).contains("h100x4", "h100x8");
    assertThat(offered("symplan", "run", "--product-algorithms", "")).contains("TIMED");
  }
}
