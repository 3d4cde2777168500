package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import dev.symplan.ir.testkit.Golden;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/** A page that shows commands, and below each what it prints. */
final class ConsolePage {
  private static final String OPEN = "```console";
  private static final String CLOSE = "```";
  private static final Pattern COMMAND = Pattern.compile("\\$ (?:\\./)?symplan (.*)");
  private static final Splitter WORDS = Splitter.on(' ').omitEmptyStrings();

  private ConsolePage() {}

  /**
   * Runs the commands of a page, and checks that the page shows what they print.
   *
   * @param located where a file that a command names is
   */
  static void check(Path page, UnaryOperator<String> located) {
    var written = new ArrayList<String>();
    boolean inside = false;
    int commands = 0;
    for (var line : Documents.text(page).lines().toList()) {
      inside = line.equals(OPEN) || (inside && !line.equals(CLOSE));
      var command = COMMAND.matcher(line);
      if (!inside || line.equals(OPEN)) {
        written.add(line);
      } else if (command.matches()) {
        written.add(line);
        written.addAll(output(command.group(1), located));
        commands++;
      }
    }
    assertThat(commands).isPositive();
    Golden.checkFile(page, String.join("\n", written) + "\n");
  }

  private static List<String> output(String command, UnaryOperator<String> located) {
    var pipe = Splitter.on(" | ").splitToList(command);
    var words = WORDS.splitToStream(pipe.getFirst()).map(located).toList();
    var ran = Ran.run(words.toArray());
    assertThat(ran.code())
        .as("%s: %s", command, ran.err())
        .isEqualTo(words.getFirst().equals("diff") ? 1 : 0);
    var lines = ran.out().lines().toList();
    for (var filter : pipe.subList(1, pipe.size())) {
      lines = filtered(lines, WORDS.splitToList(filter));
    }
    return lines;
  }

  /** {@return the lines that head, tail or {@code grep -A N WORD} leave} */
  private static List<String> filtered(List<String> lines, List<String> filter) {
    int count = Integer.parseInt(filter.get(filter.size() == 2 ? 1 : 2).replace("-", ""));
    return switch (filter.getFirst()) {
      case "head" -> lines.subList(0, Math.min(count, lines.size()));
      case "tail" -> lines.subList(Math.max(0, lines.size() - count), lines.size());
      case "grep" -> {
        int first =
            lines.indexOf(
                lines.stream()
                    .filter(line -> line.contains(filter.get(3)))
                    .findFirst()
                    .orElseThrow());
        yield lines.subList(first, Math.min(first + 1 + count, lines.size()));
      }
      default -> throw new AssertionError("unknown filter: " + filter);
    };
  }
}
