package dev.symplan.codegen.model;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Lists;
import dev.symplan.ir.testkit.Tools;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;

/**
 * Runs spin, where it and a C compiler are installed.
 *
 * <p>Nearly all of what the compiler reads is the same for all models. So several become one
 * program, in which every name has the number of its model, and each run of it explores one.
 */
final class Spin {
  /** The compiler then takes as long for the models as for the rest, and states stay small. */
  private static final int MODELS_OF_A_PROGRAM = 12;

  private static final Pattern ERRORS = Pattern.compile("errors: (\\d+)");
  private static final Pattern FIRST = Pattern.compile("pan:1: (.*) \\(at depth \\d+\\)");
  private static final Pattern COMMENT = Pattern.compile("/\\*.*?\\*/", Pattern.DOTALL);
  private static final Pattern WORD = Pattern.compile("[A-Za-z_]\\w*");
  private static final Pattern NUMBER = Pattern.compile("_model\\d+");

  /** The words of Promela that the models use. Spin refuses a text where another one is changed. */
  private static final ImmutableSet<String> KEYWORDS =
      ImmutableSet.of(
          "assert",
          "atomic",
          "bit",
          "break",
          "byte",
          "d_step",
          "define",
          "do",
          "else",
          "fi",
          "for",
          "if",
          "init",
          "inline",
          "od",
          "proctype",
          "run",
          "skip");

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

  /** {@return a model for 2, 3 and 4 ranks each} */
  static ImmutableMap<String, String> ofRanks(String name, IntFunction<String> model) {
    return IntStream.rangeClosed(2, 4)
        .boxed()
        .collect(ImmutableMap.toImmutableMap(ranks -> name + ", " + ranks, model::apply));
  }

  /** Checks models, by name, in which nothing may go wrong. */
  static void assertSafe(Map<String, String> models) {
    assertThat(check(models)).isNotEmpty().allSatisfy((_, error) -> assertThat(error).isEmpty());
  }

  /** Checks models, by name, in each of which some interleaving must fail in such a way. */
  static void assertUnsafe(Map<String, String> models, String error) {
    assertThat(check(models))
        .isNotEmpty()
        .allSatisfy(
            (_, found) ->
                assertThat(found)
                    .hasValueSatisfying(message -> assertThat(message).matches(error)));
  }

  /**
   * {@return for each model, by its name, the failure of some interleaving; empty if none fails}
   *
   * @param models Promela texts
   */
  static ImmutableMap<String, Optional<String>> check(Map<String, String> models) {
    var programs = Lists.partition(List.copyOf(models.entrySet()), MODELS_OF_A_PROGRAM);
    return programs.parallelStream()
        .flatMap(program -> Tools.inFolder(folder -> check(folder, program)).entrySet().stream())
        .collect(ImmutableMap.toImmutableMap(Map.Entry::getKey, Map.Entry::getValue));
  }

  private static Map<String, Optional<String>> check(
      Path folder, List<Map.Entry<String, String>> models) throws IOException {
    Files.writeString(folder.resolve("models.pml"), program(models));
    Tools.run(folder, List.of("spin", "-a", "models.pml"));
    Tools.run(
        folder,
        List.of(
            COMPILER.orElseThrow(),
            "-O0",
            "-w",
            "-DSAFETY",
            "-DVECTORSZ=8192",
            "-o",
            "pan",
            "pan.c"));
    var found = new LinkedHashMap<String, Optional<String>>();
    for (int i = 0; i < models.size(); i++) {
      var command = List.of("env", "MODEL=" + i, "./pan", "-w20", "-m100000");
      found.put(models.get(i).getKey(), failure(Tools.run(folder, command)));
    }
    return found;
  }

  private static String program(List<Map.Entry<String, String>> models) {
    var out = new StringBuilder("c_decl {\n\\#include <stdlib.h>\nint model;\n}\n");
    var choices = new StringBuilder();
    for (int i = 0; i < models.size(); i++) {
      int number = i;
      var text = COMMENT.matcher(models.get(i).getValue()).replaceAll("");
      out.append(
          WORD.matcher(text)
              .replaceAll(
                  word ->
                      KEYWORDS.contains(word.group())
                          ? word.group()
                          : word.group() + "_model" + number)
              .replace("init {", "proctype main_model%s() {".formatted(number)));
      choices.append("  :: c_expr { model == %1$s } -> run main_model%1$s()\n".formatted(number));
    }
    return out.append("init {\n  c_code { model = atoi(getenv(\"MODEL\")); };\n  if\n")
        .append(choices)
        .append("  fi\n}\n")
        .toString();
  }

  private static Optional<String> failure(String said) {
    var errors = ERRORS.matcher(said);
    if (!errors.find() || said.contains("max search depth too small")) {
      throw new IllegalStateException("the search is not complete: " + said);
    }
    if (errors.group(1).equals("0")) {
      return Optional.empty();
    }
    var first = FIRST.matcher(NUMBER.matcher(said).replaceAll(""));
    return Optional.of(first.find() ? first.group(1) : said);
  }
}
