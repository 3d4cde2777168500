package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.base.Suppliers;
import dev.symplan.cli.common.ExitCode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Pages as the command line writes them, and what else it says of the same plans. */
final class Pages {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root"));
  private static final Path SHARED = Path.of(System.getProperty("symplan.shared"));

  /** Four layers of an MLP, gathered over eight ranks: collectives beside compute. */
  static final List<String> FSDP =
      List.of(sample("cases/plan/fsdp8_mlp_train_4l.0.fx.txt"), "--ranks", "8");

  private static final Supplier<Path> FSDP_PAGE =
      Suppliers.memoize(() -> write(folder().resolve("fsdp.html"), FSDP));

  private Pages() {}

  /** {@return the page of {@link #FSDP}, which all tests read} */
  static Path fsdp() {
    return FSDP_PAGE.get();
  }

  private static Path folder() {
    try {
      return Files.createDirectories(Path.of("target", "pages").toAbsolutePath());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String sample(String name) {
    return ROOT.resolve("samples").resolve(name).toString();
  }

  /** {@return a graph of the shared cases, which need not be there} */
  static Path shared(String name) {
    return SHARED.resolve("cases/plan").resolve(name);
  }

  static Path docs(String name) {
    return ROOT.resolve("docs").resolve(name);
  }

  /**
   * Runs a command.
   *
   * @param expected its exit code
   */
  static String run(List<String> command, int expected) {
    var out = new ByteArrayOutputStream();
    var err = new ByteArrayOutputStream();
    try (var o = new PrintStream(out, true, StandardCharsets.UTF_8);
        var e = new PrintStream(err, true, StandardCharsets.UTF_8)) {
      int code = Main.run(command.toArray(String[]::new), o, e);
      assertThat(code).as("%s: %s", command, err).isEqualTo(expected);
    }
    return out.toString(StandardCharsets.UTF_8);
  }

  static List<String> with(List<String> words, String... more) {
    return Stream.of(words, List.of(more)).flatMap(List::stream).toList();
  }

  private static List<String> command(String name, List<String> input, String... options) {
    return with(with(List.of(name), input.toArray(String[]::new)), options);
  }

  /** {@return the page of a plan} */
  static Path write(Path file, List<String> input) {
    return dump(file, "html", input);
  }

  /** {@return the name of the file with the plan} */
  static String compile(Path file, List<String> input) {
    run(command("compile", input, "-o", file.toString()), ExitCode.OK);
    return file.toString();
  }

  static Path dump(Path file, String format, List<String> input) {
    run(command("dump", input, "--format", format, "-o", file.toString()), ExitCode.OK);
    return file;
  }

  /** {@return the report of a plan, for programs} */
  static JsonNode report(List<String> input) {
    var text = run(command("dump", input, "--format", "json"), ExitCode.OK);
    try {
      return new ObjectMapper().readTree(text);
    } catch (IOException e) {
      throw new AssertionError(text, e);
    }
  }

  /** {@return the facts of the rows of a view, of the first graph} */
  static List<JsonNode> facts(JsonNode report, String view) {
    return stream(report.get("sections"))
        .filter(section -> section.get("view").textValue().equals(view))
        .findFirst()
        .map(section -> stream(section.get("rows")).map(row -> row.get("facts")).toList())
        .orElseThrow();
  }

  static Stream<JsonNode> stream(JsonNode list) {
    return StreamSupport.stream(list.spliterator(), false);
  }
}
