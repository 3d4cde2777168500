package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.Golden;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Texts in the many forms that people have are planned, or refused with a way to go on. */
class ForeignTextsTest {
  private static final Path TEXTS =
      Path.of(System.getProperty("basedir", "")).resolve("src/test/resources/texts");

  /** Options that hints name. */
  private static final Pattern OPTION =
      Pattern.compile(
          "(--free-variants|--ranks \\d+|--dim-max u0\\+u1=\\d+|--dim [a-z]+\\d+=\\d+)"
              + "|--graph: (\\w+)");

  private static final int MAX_TRIES = 3;

  private final StringBuilder said = new StringBuilder();
  private int planned;

  @Test
  void textsArePlannedOrRefusedInTheseWords() throws IOException {
    List<Path> files;
    try (var list = Files.list(TEXTS)) {
      files = list.sorted().toList();
    }
    files.forEach(this::describe);
    Golden.check("foreign-texts.txt", said.toString());
    assertThat(planned).isGreaterThan(files.size() / 2);
  }

  /** Compiles a text, and where it is refused, once more with the options that hints name. */
  private void describe(Path file) {
    said.append("# ").append(file.getFileName()).append('\n');
    var options = new LinkedHashSet<String>();
    for (int tries = 0; tries < MAX_TRIES; tries++) {
      var ran = compile(file, options);
      assertThat(ran.code()).as(ran.said()).isIn(0, 1);
      ran.out().lines().filter(line -> line.startsWith("work ")).forEach(this::line);
      ran.err().lines().filter(ForeignTextsTest::isMessage).forEach(this::line);
      if (ran.code() == 0) {
        planned++;
        return;
      }
      if (!options.addAll(named(ran.err()))) {
        return;
      }
      line("with " + String.join(" ", options));
    }
  }

  private static Ran compile(Path file, Set<String> options) {
    var args = new ArrayList<Object>(List.of("compile", file));
    if (options.stream().noneMatch(option -> option.startsWith("--ranks"))) {
      args.addAll(List.of("--ranks", 2));
    }
    options.forEach(option -> args.addAll(List.of(option.split(" "))));
    return Ran.run(args.toArray());
  }

  private static boolean isMessage(String line) {
    return line.startsWith(TEXTS.toString()) || line.startsWith("   hint: ");
  }

  private static Set<String> named(String messages) {
    var options = new LinkedHashSet<String>();
    var option = OPTION.matcher(messages);
    while (option.find()) {
      options.add(option.group(2) == null ? option.group(1) : "--graph " + option.group(2));
    }
    return options;
  }

  private void line(String line) {
    said.append("  ").append(line.replace(TEXTS + "/", "")).append('\n');
  }
}
