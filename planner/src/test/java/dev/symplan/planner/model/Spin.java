package dev.symplan.planner.model;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;

/** Runs spin, where it and a C compiler are installed. */
final class Spin {
  private static final Pattern ERRORS = Pattern.compile("errors: (\\d+)");
  private static final Pattern FIRST = Pattern.compile("pan:1: (.*) \\(at depth \\d+\\)");
  private static final long PATIENCE_SECONDS = 120;
  private static final Optional<String> COMPILER =
      List.of("cc", "gcc", "clang").stream().filter(Spin::isInstalled).findFirst();
  private static final boolean PRESENT = isInstalled("spin") && COMPILER.isPresent();

  private Spin() {}

  private static boolean isInstalled(String program) {
    for (var folder : System.getenv().getOrDefault("PATH", "").split(java.io.File.pathSeparator)) {
      if (!folder.isEmpty() && Files.isExecutable(Path.of(folder, program))) {
        return true;
      }
    }
    return false;
  }

  /** Skips the test where there is no spin. */
  static void assumePresent() {
    Assumptions.assumeTrue(
        PRESENT,
        "the models of the barrier protocols are not checked: spin and a C compiler are needed, as"
            + " with apt-get install spin gcc");
  }

  /** Checks the models of 2, 3 and 4 ranks, in which nothing may go wrong. */
  static void assertSafe(IntFunction<String> model) {
    var errors =
        IntStream.rangeClosed(2, 4)
            .parallel()
            .mapToObj(ranks -> check(model.apply(ranks)).map(e -> ranks + " ranks: " + e))
            .flatMap(Optional::stream)
            .toList();
    assertThat(errors).isEmpty();
  }

  /**
   * {@return what goes wrong in some interleaving; empty if nothing does in any}
   *
   * @param model Promela text
   */
  static Optional<String> check(String model) {
    try {
      var folder = Files.createTempDirectory("symplan-spin");
      try {
        return check(folder, model);
      } finally {
        try (var files = Files.list(folder)) {
          for (var file : files.toList()) {
            Files.delete(file);
          }
        }
        Files.delete(folder);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Optional<String> check(Path folder, String model) throws IOException {
    Files.writeString(folder.resolve("model.pml"), model);
    run(folder, "spin", "-a", "model.pml");
    run(folder, COMPILER.orElseThrow(), "-O0", "-w", "-DSAFETY", "-o", "pan", "pan.c");
    var said = run(folder, "./pan", "-w20", "-m100000");
    var errors = ERRORS.matcher(said);
    if (!errors.find() || said.contains("max search depth too small")) {
      throw new IllegalStateException("the search is not complete: " + said);
    }
    if (errors.group(1).equals("0")) {
      return Optional.empty();
    }
    var first = FIRST.matcher(said);
    return Optional.of(first.find() ? first.group(1) : said);
  }

  private static String run(Path folder, String... command) throws IOException {
    var output = folder.resolve("said.txt");
    var process =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new IllegalStateException(String.join(" ", command) + " does not end");
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
    var said = Files.readString(output, UTF_8);
    if (process.exitValue() != 0) {
      throw new IllegalStateException(String.join(" ", command) + " failed: " + said);
    }
    return said;
  }
}
