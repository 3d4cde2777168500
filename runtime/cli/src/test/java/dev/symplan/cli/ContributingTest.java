package dev.symplan.cli;

import static com.google.common.collect.ImmutableList.toImmutableList;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The files, classes and tests that CONTRIBUTING.md names exist, and so do the options of Maven
 * that any page gives.
 */
class ContributingTest {
  private static final Path ROOT = Documents.ROOT;
  private static final Path PAGE = ROOT.resolve("CONTRIBUTING.md");
  private static final Pattern CODE = Pattern.compile("`([^`]+)`");
  private static final Pattern LINK = Pattern.compile("]\\(([^)#]+)[^)]*\\)");
  private static final Pattern PROPERTY = Pattern.compile("-D([\\w.]+)(?:=(.*))?");
  private static final Pattern MEMBER = Pattern.compile("([A-Z]\\w*)[.#](\\w+)");

  /** Properties that Maven and its plugins define, rather than this project. */
  private static final ImmutableSet<String> OF_MAVEN =
      ImmutableSet.of(
          "mvn",
          "-pl",
          "-am",
          "-N",
          "-o",
          "validate",
          "compile",
          "exec:java",
          "test-compile",
          "test",
          "package",
          "verify",
          "install");

  private static final ImmutableSet<String> PROPERTIES_OF_MAVEN =
      ImmutableSet.of(
          "exec.args",
          "exec.mainClass",
          "groups",
          "skipTests",
          "surefire.failIfNoSpecifiedTests",
          "test");

  private static ImmutableList<Path> files = ImmutableList.of();

  @TempDir private Path folder;

  /** Files that a build makes, or that hidden folders hold, are not named by their last part. */
  @BeforeAll
  static void listFiles() throws IOException {
    try (var tops = Files.list(ROOT)) {
      files =
          tops.filter(top -> !top.getFileName().toString().startsWith("."))
              .flatMap(ContributingTest::below)
              .map(ROOT::relativize)
              .filter(file -> !Path.of("target").equals(file.getName(0)))
              .filter(file -> !file.toString().replace('\\', '/').contains("/target/"))
              .collect(toImmutableList());
    }
  }

  private static Stream<Path> below(Path top) {
    try (var found = Files.walk(top)) {
      return found.toList().stream();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static Stream<String> lines(String prefix) throws IOException {
    return Files.readAllLines(PAGE).stream().map(String::strip).filter(l -> l.startsWith(prefix));
  }

  private static boolean exists(String name) {
    return Files.exists(ROOT.resolve(name))
        || has(name)
        || has(name + ".java")
        || has(name.replace('.', '/') + "/package-info.java")
        || hasMember(name);
  }

  private static boolean has(String end) {
    return files.stream().anyMatch(file -> file.endsWith(end));
  }

  private static boolean hasMember(String name) {
    var member = MEMBER.matcher(name);
    return member.matches()
        && files.stream()
            .filter(file -> file.endsWith(member.group(1) + ".java"))
            .anyMatch(file -> mentions(file, "\\b%s\\(".formatted(member.group(2))));
  }

  private static boolean mentions(Path file, String pattern) {
    try {
      return Pattern.compile(pattern).matcher(Files.readString(ROOT.resolve(file))).find();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void whatItNamesExists() throws IOException {
    var text = Files.readString(PAGE);
    var names =
        Stream.of(CODE, LINK)
            .flatMap(pattern -> pattern.matcher(text).results())
            .map(found -> found.group(1))
            .filter(name -> !name.startsWith("-") && !name.startsWith("mvn "))
            .toList();
    assertThat(names).hasSizeGreaterThan(100).allMatch(ContributingTest::exists);
    assertThat(names).allMatch(name -> !name.endsWith("Test") || has(name + ".java"));
  }

  @Test
  void optionsOfMavenAreReal() throws IOException {
    var commands =
        Stream.concat(
                Documents.pages().stream()
                    .flatMap(
                        page ->
                            Stream.concat(
                                Documents.code(page).stream(), Documents.inline(page).stream()))
                    .filter(code -> code.startsWith("mvn ")),
                Stream.of(inText()))
            .distinct()
            .toList();
    assertThat(commands).hasSizeGreaterThan(15).contains("mvn verify");
    for (var command : commands) {
      var words = Splitter.on(' ').splitToList(command.replace("'", ""));
      int modules = words.indexOf("-pl") + 1;
      var folders =
          modules > 0
              ? Splitter.on(',').splitToStream(words.get(modules)).map(Path::of).toList()
              : List.of(Path.of(""));
      assertThat(folders)
          .as(command)
          .allMatch(f -> Files.exists(ROOT.resolve(f).resolve("pom.xml")));
      for (int i = 0; i < words.size(); i++) {
        var word = words.get(i);
        assertThat(
                OF_MAVEN.contains(word)
                    || i == modules && modules > 0
                    || isRun(word)
                    || isProfile(word)
                    || isProperty(word, folders))
            .as("%s in: %s", word, command)
            .isTrue();
      }
    }
  }

  private static boolean isProfile(String word) {
    return word.startsWith("-P")
        && poms().anyMatch(pom -> mentions(pom, "<id>%s</id>".formatted(word.substring(2))));
  }

  private static Stream<Path> poms() {
    return files.stream().filter(file -> file.endsWith("pom.xml"));
  }

  /** The options that the text, rather than a command, speaks of. */
  private static String inText() throws IOException {
    return "mvn "
        + String.join(
            " ",
            CODE.matcher(Files.readString(PAGE))
                .results()
                .map(found -> found.group(1))
                .filter(code -> code.startsWith("-D"))
                .toList());
  }

  private static boolean isRun(String word) {
    var id = word.startsWith("exec:exec@") ? word.substring("exec:exec@".length()) : "";
    return !id.isEmpty() && mentions(Path.of("pom.xml"), "<id>%s</id>".formatted(id));
  }

  private static boolean isProperty(String word, List<Path> folders) {
    var property = PROPERTY.matcher(word);
    if (!property.matches()) {
      return false;
    }
    var name = property.group(1);
    if (name.equals("test")) {
      return Splitter.on(',')
          .splitToStream(property.group(2))
          .allMatch(t -> folders.stream().anyMatch(folder -> isTest(t, folder)));
    }
    return PROPERTIES_OF_MAVEN.contains(name)
        || poms()
            .anyMatch(
                pom ->
                    mentions(pom, "<name>%1$s</name>|<%1$s( />|>)".formatted(Pattern.quote(name))))
        || files.stream()
            .filter(file -> file.toString().contains("src/test/java"))
            .anyMatch(file -> Files.isRegularFile(ROOT.resolve(file)) && reads(file, name));
  }

  private static boolean reads(Path file, String property) {
    return mentions(file, "(get\\w+\\(|named = )\"%s\"".formatted(Pattern.quote(property)));
  }

  private static boolean isTest(String test, Path module) {
    var parts = Splitter.on('#').splitToList(test);
    return files.stream()
        .filter(file -> file.startsWith(module) && file.endsWith(parts.getFirst() + ".java"))
        .anyMatch(
            file -> parts.size() == 1 || mentions(file, "void %s\\(".formatted(parts.get(1))));
  }

  @Test
  void commandsOfSymplanRun() throws IOException {
    var commands = lines("./symplan ").toList();
    assertThat(commands).hasSize(4);
    for (var command : commands) {
      var words = Splitter.on(' ').splitToList(command);
      var args = words.subList(1, words.size()).stream().map(this::located).toList();
      assertThat(Ran.run(args.toArray()).code()).as(command).isZero();
    }
    assertThat(folder.resolve("passes")).isNotEmptyDirectory();
  }

  /** Files of the project are there; others are those that the commands make. */
  private String located(String word) {
    var made = List.of("before.json", "after.json", "passes");
    return made.contains(word)
        ? folder.resolve(word).toString()
        : word.contains("/") ? ROOT.resolve(word).toString() : word;
  }
}
