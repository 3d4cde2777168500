package dev.symplan.cli;

import static com.google.common.collect.ImmutableList.toImmutableList;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.base.Ascii;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.cli.common.Console;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Everything that README, CONTRIBUTING and the pages of docs name is there, and their commands run.
 */
class DocumentsTest {
  private static final Pattern LINK = Pattern.compile("\\[([^\\]]*)]\\(([^)\\s]+)\\)");
  private static final Pattern HEADING = Pattern.compile("^#+ (.*)$", Pattern.MULTILINE);
  private static final Pattern CODE =
      Pattern.compile("^```.*?^```$", Pattern.MULTILINE | Pattern.DOTALL);
  private static final Pattern COMMAND =
      Pattern.compile("(?:^|.* )(?:\\./|bin/)?symplan ([a-z-].*?)(?: \\| .*)?");
  private static final Pattern PLACEHOLDER = Pattern.compile("[\\[\\]{}…]|\\b[A-Z][A-Z_]+\\b");
  private static final Pattern OPTION = Pattern.compile("^--?[a-z][a-z-]*");

  /** Commands that need a GPU, or the output of a program. */
  private static final ImmutableSet<String> NEED_MORE =
      ImmutableSet.of("bench", "calibrate", "completion");

  @TempDir private Path folder;

  record Found(Path page, String text) {
    @Override
    public String toString() {
      return "%s: %s".formatted(page.getFileName(), text);
    }
  }

  static Stream<Path> pages() {
    return Documents.pages().stream();
  }

  @Test
  void theReadmeSaysWhatTheCommandsPrint() {
    ConsolePage.check(Documents.ROOT.resolve("README.md"), DocumentsTest::located);
  }

  @Test
  void thePageOfTargetsSaysWhatTheCommandsPrint() {
    ConsolePage.check(Documents.ROOT.resolve("docs/targets.md"), DocumentsTest::located);
  }

  /** {@return a file of the project; what the capture of the README writes is a sample} */
  private static String located(String word) {
    return !word.contains("/")
        ? word
        : Documents.ROOT.resolve(word.startsWith("cases/") ? "samples/" + word : word).toString();
  }

  @ParameterizedTest
  @MethodSource("pages")
  void linksLeadSomewhere(Path page) {
    for (var link :
        LINK.matcher(CODE.matcher(Documents.text(page)).replaceAll("")).results().toList()) {
      var target = link.group(2);
      if (!target.startsWith("https://")) {
        int hash = target.indexOf('#');
        var file = hash < 0 ? target : target.substring(0, hash);
        var path = file.isEmpty() ? page : page.resolveSibling(file).normalize();
        assertThat(path).as(target).exists();
        if (hash >= 0) {
          assertThat(anchors(path)).as(target).contains(target.substring(hash + 1));
        }
      }
    }
  }

  /** {@return the names that GitHub gives the headings of a page} */
  private static List<String> anchors(Path page) {
    return HEADING
        .matcher(CODE.matcher(Documents.text(page)).replaceAll(""))
        .results()
        .map(
            found ->
                Ascii.toLowerCase(found.group(1)).replaceAll("[^\\w\\- ]", "").replace(' ', '-'))
        .toList();
  }

  @Test
  void theIndexHasEveryPageOnceWithItsTitle() {
    var index = Documents.ROOT.resolve("docs/README.md");
    var links = LINK.matcher(Documents.text(index)).results().toList();
    assertThat(links.stream().map(link -> link.group(2)).filter(link -> !link.startsWith("..")))
        .containsExactlyInAnyOrderElementsOf(
            Documents.docs().stream()
                .map(page -> page.getFileName().toString())
                .filter(page -> !page.equals("README.md"))
                .toList());
    for (var link : links) {
      var title = HEADING.matcher(Documents.text(index.resolveSibling(link.group(2))));
      assertThat(title.find()).isTrue();
      assertThat(link.group(1)).isEqualTo(title.group(1));
    }
  }

  /** {@return the commands that code gives} */
  static ImmutableList<Found> commands() {
    return Documents.pages().stream()
        .flatMap(page -> found(page, Documents.code(page).stream()))
        .collect(toImmutableList());
  }

  private static Stream<Found> found(Path page, Stream<String> code) {
    return code.map(COMMAND::matcher)
        .filter(Matcher::matches)
        .map(found -> new Found(page, found.group(1).replace(")", "")))
        .distinct();
  }

  /** The commands and options that sentences speak of exist. */
  @ParameterizedTest
  @MethodSource("pages")
  void namedCommandsExist(Path page) {
    var inline = Documents.inline(page).stream().filter(code -> code.startsWith("symplan "));
    found(page, inline).forEach(command -> requireOptions(command.text()));
  }

  /** Those with placeholders have real options; the others are parsed, and run where they can. */
  @ParameterizedTest
  @MethodSource("commands")
  void commandsAreRight(Found command) {
    var line = Main.commandLine(Console.silent());
    if (PLACEHOLDER.matcher(command.text()).find()) {
      requireOptions(command.text());
      return;
    }
    var words = Splitter.on(' ').omitEmptyStrings().splitToList(command.text());
    line.parseArgs(words.toArray(String[]::new));
    if (canRun(words)) {
      var args = words.stream().map(this::made).toList();
      var ran = Ran.run(args.toArray());
      assertThat(ran.code()).as(ran.said()).isZero();
    }
  }

  private static boolean canRun(List<String> words) {
    return !NEED_MORE.contains(words.getFirst())
        && words.size() > 1
        && words.stream().noneMatch(word -> word.equals("cuda") || word.contains("gpu"))
        && words.stream()
            .anyMatch(word -> word.startsWith("samples/") || word.startsWith("cases/mine_0_i"))
        && words.stream()
            .allMatch(word -> !word.contains("/") || Files.exists(Path.of(located(word))));
  }

  private String made(String word) {
    return word.matches(".*\\.(json|html|plan)|passes")
        ? folder.resolve(word).toString()
        : located(word);
  }

  private static void requireOptions(String command) {
    var root = Main.commandLine(Console.silent());
    var line = root;
    for (var word : Splitter.onPattern("[\\s\\[\\]]+").omitEmptyStrings().split(command)) {
      var option = OPTION.matcher(word);
      if (line.getSubcommands().containsKey(word)) {
        line = line.getSubcommands().get(word);
      } else if (option.lookingAt()) {
        var name = option.group();
        assertThat(Stream.concat(Stream.of(line), line.getSubcommands().values().stream()))
            .as(command)
            .anyMatch(some -> some.getCommandSpec().findOption(name) != null);
      }
    }
    assertThat(line).as(command).isNotSameAs(root);
  }

  @Test
  void commandsAreFound() {
    assertThat(commands()).hasSizeGreaterThan(50);
    assertThat(commands().stream().filter(c -> c.page().endsWith("README.md")))
        .anyMatch(c -> c.text().equals("run samples/tp_mlp.graph --ranks 4"));
  }

  private static Stream<Found> pythonBlocks() {
    return Documents.pages().stream()
        .flatMap(
            page ->
                Pattern.compile("^( *)```python\\n(.*?)^ *```$", Pattern.MULTILINE | Pattern.DOTALL)
                    .matcher(Documents.text(page))
                    .results()
                    .map(block -> new Found(page, block.group(2).stripTrailing().stripIndent())));
  }

  /** All in one process, since Python takes longer to begin than to read them. */
  @Test
  void pythonIsPython() throws IOException, InterruptedException {
    var texts = new ArrayList<Path>();
    for (var block : pythonBlocks().toList()) {
      var page = block.page().getFileName();
      var file = folder.resolve("%s.%s.py".formatted(page, texts.size()));
      texts.add(Files.writeString(file, block.text()));
    }
    assertThat(texts).hasSizeGreaterThan(5);
    try (var files = Files.walk(Documents.ROOT.resolve("samples"))) {
      files.filter(file -> file.toString().endsWith(".py")).forEach(texts::add);
    }
    assertThat(texts).hasSizeGreaterThan(15);
    var failures = Files.createFile(folder.resolve("failures.txt"));
    var command =
        new ArrayList<>(
            List.of(
                "python3",
                "-c",
                "import ast, sys\nfor name in sys.argv[1:]: ast.parse(open(name).read(), name)"));
    texts.forEach(file -> command.add(file.toString()));
    int code;
    try {
      code =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(failures.toFile())
              .start()
              .waitFor();
    } catch (IOException e) {
      assumeTrue(false, "there is no python3");
      throw new AssertionError(e);
    }
    assertThat(code).as(Files.readString(failures)).isZero();
  }
}
