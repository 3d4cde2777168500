package dev.symplan.ir.hlo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Random;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever the module, reading ends soon, with diagnostics or a program and nothing else. */
@Tag("random")
class HostileModulesTest {
  private static final Path FOLDER =
      Path.of(System.getProperty("basedir", ""), "src/test/resources/hlo/modules");
  private static final Duration LIMIT = Duration.ofSeconds(20);

  private static final String[] PIECES = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "%",
    "#0",
    "#99",
    "\n",
    "-1",
    "0",
    "7",
    "4294967296",
    "99999999999999999999",
    "f32[]",
    "pred[3]",
    "s4[5]{0:E(4)}",
    "{0,0}",
    "{5}",
    "ROOT ",
    "ENTRY ",
    "tuple",
    "dot",
    "reduce",
    "all-reduce",
    "all-gather-start",
    "async-done",
    "fusion",
    "\"",
    "'",
    "bitcast",
    "custom-call",
    "parameter",
    "constant",
    "%p0",
    "%param.1",
    "replica_groups={{0}}",
    "dimensions={9}",
    "é",
    "\0",
    "call",
    "broadcast",
    "get-tuple-element",
    "transpose",
    "slice"
  };

  private static String text(String name) {
    return SourceReader.read(FOLDER.resolve(name)).text();
  }

  private static ImmutableList<Diagnostic> read(String text) {
    try {
      HloImporter.read(
          new SourceFile("hostile.hlo", text), BuiltinOps.registry(), 0, diagnostic -> {});
      return ImmutableList.of();
    } catch (CompileException e) {
      assertThat(e.diagnostics()).isNotEmpty();
      return ImmutableList.copyOf(e.diagnostics());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"partitioned.hlo", "scheduled.hlo"})
  void readsOrRefusesRandomlyChangedModules(String name) {
    var whole = text(name);
    Fuzz.each(
        1500,
        input -> {
          var random = new Random(Fuzz.seed(23) + input);
          var text = new StringBuilder(whole);
          for (int i = 1 + random.nextInt(3); i > 0; i--) {
            int at = random.nextInt(text.length());
            int end = Math.min(text.length(), at + random.nextInt(12));
            text.replace(at, end, PIECES[random.nextInt(PIECES.length)]);
          }
          read(text.toString());
        });
  }

  @ParameterizedTest
  @ValueSource(strings = {"partitioned.hlo", "scheduled.hlo"})
  void readsOrRefusesModulesWithWordsOfOtherLines(String name) {
    var lines = text(name).lines().toList();
    Fuzz.each(
        1000,
        input -> {
          var random = new Random(Fuzz.seed(23) + input);
          var changed = new ArrayList<>(lines);
          int at = random.nextInt(lines.size());
          var words = lines.get(at).split("(?<=[ ,(){}])");
          var others = lines.get(random.nextInt(lines.size())).split("(?<=[ ,(){}])");
          words[random.nextInt(words.length)] = others[random.nextInt(others.length)];
          changed.set(at, String.join("", words));
          read(String.join("\n", changed));
        });
  }

  /** Modules that can run have more forms of instructions, whose numbers depend on each other. */
  @ParameterizedTest
  @ValueSource(
      strings = {"branch", "embedding_loss", "layers_scanned", "ragged_all_to_all", "sorted_rows"})
  void readsOrRefusesModulesWithOtherNumbers(String name) {
    var root = Path.of(System.getProperty("symplan.root", ".."));
    var whole = SourceReader.read(root.resolve("samples/cases/jax_" + name + "/module.hlo")).text();
    var numbers =
        Pattern.compile("\\b[0-9]+\\b").matcher(whole).results().map(MatchResult::start).toList();
    Fuzz.each(
        200,
        input -> {
          var random = new Random(Fuzz.seed(23) + input);
          var text = new StringBuilder(whole);
          for (int i = 1 + random.nextInt(3); i > 0; i--) {
            int at = numbers.get(random.nextInt(numbers.size()));
            text.setCharAt(at, (char) ('0' + random.nextInt(10)));
          }
          read(text.toString());
        });
  }

  @Test
  void readsOrRefusesEveryCut() {
    var whole = text("scheduled.hlo");
    for (int end = whole.indexOf("ENTRY"); end < whole.length() - 2; end++) {
      assertThat(read(whole.substring(0, end))).as("cut at %s", end).isNotEmpty();
    }
    assertThat(read(whole)).isEmpty();
  }

  private static String entry(String instruction) {
    return "HloModule m\n\nENTRY %main (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0)\n  "
        + instruction
        + "\n}\n";
  }

  @Test
  void limitsDepthAndSizes() {
    var deep = entry("ROOT %y = " + "(".repeat(100_000) + "f32[4] negate(%x)");
    var config = entry("ROOT %y = f32[4]{0} negate(%x), backend_config=" + "{".repeat(100_000));
    var long_ = entry("ROOT %y = f32[4]{0} negate(%x), a={" + "1,".repeat(1_500_000) + "}");
    for (var text : new String[] {deep, config, long_}) {
      var errors = assertTimeoutPreemptively(LIMIT, () -> read(text));
      assertThat(errors.getFirst().code()).isEqualTo(DiagnosticCode.TOO_LARGE);
      assertThat(errors.getFirst().render()).hasSizeLessThan(2000);
    }
  }

  @Test
  void refusesArgumentsThatAreNotWhatTheParametersSay() {
    var called =
        """
        HloModule m

        %f (a: f32[2,2,2]) -> f32[8] {
          %a = f32[2,2,2]{2,1,0} parameter(0)
          ROOT %b = f32[8]{0} bitcast(%a)
        }

        ENTRY %main (x: f32[8]) -> f32[8] {
          %x = f32[8]{0} parameter(0)
          ROOT %y = f32[8]{0} call(%x), to_apply=%f
        }
        """;

    assertThat(read(called).getFirst().code()).isEqualTo(DiagnosticCode.TYPE_MISMATCH);
  }

  @Test
  void limitsWhatComputationsStandFor() {
    var text = new StringBuilder("HloModule m\n");
    for (int i = 0; i < 64; i++) {
      text.append("\n%c").append(i).append(" (x: f32[4]) -> f32[4] {\n");
      text.append("  %x = f32[4]{0} parameter(0)\n");
      if (i == 0) {
        text.append("  ROOT %b = f32[4]{0} negate(%x)\n}\n");
      } else {
        text.append("  %a = f32[4]{0} call(%x), to_apply=%c").append(i - 1).append('\n');
        text.append("  ROOT %b = f32[4]{0} call(%a), to_apply=%c").append(i - 1).append("\n}\n");
      }
    }
    text.append("\nENTRY %main (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0)\n");
    text.append("  ROOT %y = f32[4]{0} call(%x), to_apply=%c63\n}\n");

    var errors = assertTimeoutPreemptively(LIMIT, () -> read(text.toString()));

    assertThat(errors.getFirst().code()).isEqualTo(DiagnosticCode.TOO_LARGE);
  }
}
