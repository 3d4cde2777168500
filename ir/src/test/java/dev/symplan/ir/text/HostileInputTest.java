package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.testkit.Fuzz;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever the input, reading ends soon, with diagnostics or a program and nothing else. */
@Tag("random")
class HostileInputTest {
  private static final OpRegistry REGISTRY = TestOps.registry();
  private static final Duration LIMIT = Duration.ofSeconds(20);

  private static final String VALID =
      """
      graph version 1

      # a comment
      group tp = [0, 1], [2, 3]

      op my_lib::f(Tensor input, str[] a=[], *, str g) -> (Tensor out, Tensor)  symm_mem(input)\
       group(g)  # why

      graph mlp(x: bf16[4, 8], w: f32[8, 4][1, 8] @symm, n: int) ranks [0, 1] {
        h: bf16[4, 8] = test::add.Tensor(x, x, alpha=1.5)
        a, _ = test::split.Tensor(h, 2)  # "é"
        c = test::to.dtype(a, torch.float32, device=device("cuda:0"))
        p: f32[2], q: f32[] = my_lib::f(c, ["x\\n"], g="tp")
        test::barrier([p, q])
        return p, None, -1, c
      }
      """;

  /** {@return the errors; empty if the text is a program} */
  private static ImmutableList<Diagnostic> read(String text) {
    var sink = new DiagnosticSink();
    try {
      GraphParser.parse(new SourceFile("hostile.graph", text), REGISTRY, sink);
    } catch (CompileException e) {
      assertThat(e.diagnostics()).isNotEmpty();
      return e.diagnostics();
    }
    return sink.diagnostics();
  }

  private static void assertFirst(String text, DiagnosticCode code, String message) {
    var errors = assertTimeoutPreemptively(LIMIT, () -> read(text));
    assertThat(errors).isNotEmpty();
    assertThat(errors.getFirst().code()).isEqualTo(code);
    assertThat(errors.getFirst().message()).contains(message);
    assertThat(errors.getFirst().render()).hasSizeLessThan(2000);
  }

  private static String statement(String text) {
    return "graph version 1\ngraph g(x: f32[2]) {\n" + text + "\nreturn x\n}\n";
  }

  @Test
  void theTextThatIsCutAndChangedIsValid() {
    assertThat(read(VALID)).isEmpty();
  }

  @Test
  void readsOrRefusesEveryTruncation() {
    for (int end = 0; end < VALID.length(); end++) {
      var text = VALID.substring(0, end);
      var errors = read(text);
      // Without its closing brace the file is never whole, unless no graph has begun.
      if (text.contains("graph mlp")) {
        assertThat(errors).as("cut at %s", end).hasSizeBetween(end < VALID.length() - 2 ? 1 : 0, 3);
      }
    }
  }

  @Test
  void decodesOrRefusesEveryTruncationOfBytes() {
    var bytes = VALID.getBytes(StandardCharsets.UTF_8);
    int refused = 0;
    for (int end = 0; end < bytes.length; end++) {
      try {
        SourceReader.decode("cut.graph", Arrays.copyOf(bytes, end));
      } catch (CompileException e) {
        assertThat(e.diagnostics().getFirst().code()).isEqualTo(DiagnosticCode.INVALID_UTF8);
        refused++;
      }
    }
    assertThat(refused).as("the two bytes of é can be cut in one place").isEqualTo(1);
  }

  @Test
  void readsOrRefusesEveryLossOfACharacterOrALine() {
    for (int i = 0; i < VALID.length(); i++) {
      read(VALID.substring(0, i) + VALID.substring(i + 1));
      read(VALID.substring(0, i) + ")" + VALID.substring(i));
      read(VALID.substring(0, i) + "\0" + VALID.substring(i + 1));
    }
    var lines = VALID.lines().toList();
    for (int i = 0; i < lines.size(); i++) {
      var rest = new ArrayList<>(lines);
      rest.remove(i);
      read(String.join("\n", rest));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void readsOrRefusesRandomTokens(long seed) {
    var random = new Random(Fuzz.seed(0) + seed);
    var words =
        List.of(
            "graph",
            "group",
            "op",
            "return",
            "version",
            "ranks",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "=",
            "@",
            "symm",
            "x",
            "y",
            "test::mm",
            "test::add.Tensor",
            "f32",
            "1",
            "-1",
            "1.5",
            "\"s\"",
            "'t'",
            "\"",
            "torch.float32",
            "torch.",
            "device",
            "None",
            "True",
            "\n",
            "\n",
            "\n  ",
            "# c",
            "->",
            "?",
            "!",
            "|",
            "*",
            "...",
            "::",
            "\u00e9",
            "\uD83D",
            "\0",
            "\r",
            "\t",
            "$",
            "inf",
            "nan",
            "_",
            "int",
            "my::f(Tensor x) -> Tensor",
            "symm_mem(x)");
    for (int i = 0; i < Fuzz.times(400); i++) {
      var text = new StringBuilder(random.nextInt(4) > 0 ? "graph version 1\n" : "");
      text.append(random.nextInt(4) > 0 ? "graph g(x: f32[2, 2]) {\n" : "");
      for (int n = random.nextInt(40); n > 0; n--) {
        text.append(words.get(random.nextInt(words.size())));
        text.append(random.nextInt(3) > 0 ? " " : "");
      }
      try {
        read(text.toString());
      } catch (RuntimeException | StackOverflowError e) {
        throw new AssertionError("seed " + seed + ", text " + i + ": " + text, e);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {11, 12, 13, 14})
  void whatIsReadPrintsAndReadsBack(long seed) {
    var random = new Random(Fuzz.seed(0) + seed);
    int valid = 0;
    for (int i = 0; i < Fuzz.times(400); i++) {
      var text = new StringBuilder(VALID);
      int at = random.nextInt(VALID.length());
      text.setCharAt(at, VALID.charAt(random.nextInt(VALID.length())));
      var sink = new DiagnosticSink();
      try {
        var program = GraphParser.parse(new SourceFile("a", text.toString()), REGISTRY, sink);
        if (!sink.hasErrors()) {
          valid++;
          var printed = GraphPrinter.print(program);
          var again = GraphParser.parse(new SourceFile("b", printed), REGISTRY, sink);
          assertThat(sink.diagnostics()).as("seed %s: %s", seed, text).isEmpty();
          assertThat(GraphPrinter.print(again)).as("seed %s: %s", seed, text).isEqualTo(printed);
        }
      } catch (CompileException e) {
        assertThat(e.diagnostics()).isNotEmpty();
      }
    }
    assertThat(valid).as("seed %s", seed).isPositive();
  }

  @Test
  void refusesDeepNesting() {
    for (var bracket : List.of("(", "[", "([", "{", "f(")) {
      assertFirst(
          statement("y = test::cat(" + bracket.repeat(100_000)),
          bracket.equals("{") ? DiagnosticCode.SYNTAX : DiagnosticCode.TOO_LARGE,
          bracket.equals("{") ? "never closed" : "deeper than 200");
    }
    assertFirst(
        statement("y = test::cat(" + "[".repeat(150) + "x" + "]".repeat(150) + ")"),
        DiagnosticCode.BAD_ARGUMENT,
        "takes Tensor[]");
    assertFirst(
        "graph version 1\nop a::b(" + "(".repeat(100) + "int" + ")".repeat(100) + " x) -> ()\n",
        DiagnosticCode.BAD_SCHEMA,
        "deeper than 64");
  }

  @Test
  void refusesHugeLines() {
    assertFirst(
        statement("y = test::cat([" + "x, ".repeat(17_000_000) + "x])"),
        DiagnosticCode.TOO_LARGE,
        "a line of 51");
    assertFirst("\u00e9".repeat(50_000_000), DiagnosticCode.TOO_LARGE, "a line of 50000000");
    assertFirst(
        statement("y = test::cat([\n" + " ".repeat(20_000_000) + "x])"),
        DiagnosticCode.TOO_LARGE,
        "a line of 20000003");
  }

  @Test
  void refusesHugeStatements() {
    assertFirst(
        statement("y = test::cat([" + "x,\n".repeat(1_200_000) + "x])"),
        DiagnosticCode.TOO_LARGE,
        "more than 2000000 tokens");
  }

  @Test
  void readsLongLinesOfAnyCharacters() {
    assertFirst(
        statement("y = test::nothing(\"" + "\u6f22".repeat(8_000_000) + "\")"),
        DiagnosticCode.UNKNOWN_OP,
        "test::nothing");
    assertFirst(statement("\u6f22".repeat(8_000_000)), DiagnosticCode.SYNTAX, "'\u6f22' (U+6F22)");
    assertThat(
            assertTimeoutPreemptively(
                LIMIT, () -> read(statement("# " + "\u6f22".repeat(8_000_000)))))
        .isEmpty();
    assertThat(
            assertTimeoutPreemptively(
                LIMIT, () -> read(statement("y = test::cat([" + "x, ".repeat(300_000) + "x])"))))
        .isEmpty();
  }

  @Test
  void readsLongFiles() {
    var text = new StringBuilder("graph version 1\n\ngraph g(x: f32[2, 2]) {\n");
    for (int i = 0; i < 20_000; i++) {
      text.append("  # statement ").append(i).append('\n');
      text.append("  y").append(i).append(" = test::mm(x, x)\n");
    }
    text.append("  return y9\n}\n");
    assertThat(assertTimeoutPreemptively(LIMIT, () -> read(text.toString()))).isEmpty();
  }

  @Test
  void refusesHugeNumbers() {
    var digits = "9".repeat(100_000);
    assertFirst(
        statement("y = test::split.Tensor(x, " + digits + ")"), DiagnosticCode.SYNTAX, "64 bits");
    assertFirst(
        statement("y: f32[" + digits + "] = test::cat([x])"), DiagnosticCode.SYNTAX, "64 bits");
    assertFirst("graph version " + digits, DiagnosticCode.UNSUPPORTED_VERSION, "version 999");
    assertFirst(
        "graph version 1\ngroup g = [" + digits + "]", DiagnosticCode.BAD_GROUP, "is not a rank");
    assertFirst(
        statement("y: f32[9223372036854775807, 9223372036854775807] = test::cat([x])"),
        DiagnosticCode.TYPE_MISMATCH,
        "2^48");
  }

  @Test
  void refusesTextOfOtherKinds() {
    assertFirst("{\"format\": \"plan\"}", DiagnosticCode.SYNTAX, "");
    assertFirst("PK\u0003\u0004\0\0\0", DiagnosticCode.SYNTAX, "U+0003");
    assertFirst("\0".repeat(1000), DiagnosticCode.SYNTAX, "U+0000");
    assertFirst("\r".repeat(1000), DiagnosticCode.SYNTAX, "U+000D");
    assertFirst("}".repeat(1000), DiagnosticCode.SYNTAX, "");
    assertFirst(")\n".repeat(100_000), DiagnosticCode.SYNTAX, "no bracket is open");
    assertFirst("(\n".repeat(100_000), DiagnosticCode.TOO_LARGE, "deeper than 200");
    assertFirst("\"\n".repeat(100_000), DiagnosticCode.SYNTAX, "not closed on its line");
  }
}
