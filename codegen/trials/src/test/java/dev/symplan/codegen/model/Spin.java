package dev.symplan.codegen.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.Tools;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;

/** Runs spin, where it and a C compiler are installed. */
final class Spin {
  private static final Pattern ERRORS = Pattern.compile("errors: (\\d+)");
  private static final Pattern FIRST = Pattern.compile("pan:1: (.*) \\(at depth \\d+\\)");
  private static final Optional<String> COMPILER =
      List.of("cc", "gcc", "clang").stream().filter(Tools::isInstalled).findFirst();
  private static final boolean PRESENT = Tools.isInstalled("spin") && COMPILER.isPresent();

  private Spin() {}

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
   * {@return the failure of some interleaving; empty if none fails}
   *
   * @param model Promela text
   */
  static Optional<String> check(String model) {
    return Tools.inFolder(folder -> check(folder, model));
  }

  private static Optional<String> check(Path folder, String model) throws IOException {
    Files.writeString(folder.resolve("model.pml"), model);
    Tools.run(folder, List.of("spin", "-a", "model.pml"));
    Tools.run(
        folder, List.of(COMPILER.orElseThrow(), "-O0", "-w", "-DSAFETY", "-o", "pan", "pan.c"));
    var said = Tools.run(folder, List.of("./pan", "-w20", "-m100000"));
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
}
