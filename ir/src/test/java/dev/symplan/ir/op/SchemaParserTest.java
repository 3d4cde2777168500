package dev.symplan.ir.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableSet;
import com.google.common.io.Resources;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class SchemaParserTest {

  static Stream<String> schemas() throws IOException {
    return Resources.readLines(Resources.getResource("schemas/pytorch.txt"), StandardCharsets.UTF_8)
        .stream()
        .filter(line -> !line.startsWith("#"));
  }

  @ParameterizedTest
  @MethodSource("schemas")
  void printsSchemaAsItWas(String text) {
    assertThat(SchemaParser.parse(text).toString()).isEqualTo(text);
  }

  @Test
  void readsNameTypesAliasesAndResults() {
    var schema =
        SchemaParser.parse(
            "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");

    assertThat(schema.name()).isEqualTo(new OpName("aten", "split", "Tensor"));
    assertThat(schema.params())
        .extracting(Param::name)
        .containsExactly("self", "split_size", "dim");
    assertThat(schema.params().get(0).alias())
        .isEqualTo(new AliasInfo(ImmutableSet.of("a"), false, ImmutableSet.of("*"), false));
    assertThat(schema.params().get(1).type()).isEqualTo(SchemaType.Base.SYM_INT);
    assertThat(schema.params().get(2).defaultValue()).contains(new Arg.Int(0));
    assertThat(schema.results())
        .containsExactly(
            new SchemaResult(
                "",
                new SchemaType.ListOf(SchemaType.Base.TENSOR, OptionalInt.empty()),
                new AliasInfo(ImmutableSet.of("a"), false, ImmutableSet.of("a"), false)));
    assertThat(schema.mutates()).isFalse();
  }

  @Test
  void marksKeywordOnlyParametersBehindTheStar() {
    var schema = SchemaParser.parse("aten::add.out(Tensor a, *, Tensor(a!) out) -> Tensor(a!)");

    assertThat(schema.params()).extracting(Param::keywordOnly).containsExactly(false, true);
    assertThat(schema.mutates()).isTrue();
  }

  @Test
  void tellsOneNamedResultFromAListOfResults() {
    assertThat(SchemaParser.parse("a::b() -> ()").results()).isEmpty();
    assertThat(SchemaParser.parse("a::b() -> (Tensor out)").results())
        .extracting(SchemaResult::name)
        .containsExactly("out");
    assertThat(SchemaParser.parse("a::b() -> ((str, int)[])").results())
        .extracting(r -> r.type().toString())
        .containsExactly("(str, int)[]");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "int[2] x=1         | Seq[items=[Int[value=1], Int[value=1]]]",
        "int[2] x=[-2,-1]   | Seq[items=[Int[value=-2], Int[value=-1]]]",
        "int[] x=[]         | Seq[items=[]]",
        "float x=1          | Float[value=1.0]",
        "float x=1e-05      | Float[value=1.0E-5]",
        "float x=-inf       | Float[value=-Infinity]",
        "Scalar x=1         | Int[value=1]",
        "int x=Mean         | Int[value=1]",
        "int x=Sum          | Int[value=2]",
        "bool[2] x=[True, False] | Seq[items=[Bool[value=true], Bool[value=false]]]",
        "MemoryFormat x=contiguous_format | Symbol[name=contiguous_format]",
        "str x=\"none\"     | Str[value=none]",
        "str x='a\\'b'      | Str[value=a'b]",
        "Tensor? x=None     | NONE",
        "Device x=\"cpu\"   | Device[name=cpu]",
      },
      quoteCharacter = '`')
  void readsDefaults(String param, String expected) {
    var schema = SchemaParser.parse("test::op(" + param + ") -> ()");

    assertThat(schema.params().getFirst().defaultValue().orElseThrow()).hasToString(expected);
  }

  @Test
  void readsElementTypesByTheirShortWords() {
    assertThat(SchemaParser.parse("a::b(ScalarType t=long, ScalarType? u=bfloat16) -> ()").params())
        .extracting(p -> p.defaultValue().orElseThrow())
        .containsExactly(new Arg.Dtype(DType.I64), new Arg.Dtype(DType.BF16));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "aten::mm(Tensor self Tensor mat2) -> Tensor | 1:22 | expected ',' or ')', not 'Tensor'",
        "aten::mm(Tensor self, Tensor mat2)          | 1:35 | expected '->' at the end of the"
            + " schema",
        "mm(Tensor self) -> Tensor                   | 1:3  | expected '::', not '('",
        "aten::mm(tensor self) -> Tensor             | 1:10 | no type 'tensor'",
        "aten::mm(Tenser self) -> Tensor             | 1:10 | no type 'Tenser'",
        "aten::mm(Tensor self, Tensor self) -> ()    | 1:30 | a second parameter 'self'",
        "aten::mm(Tensor self, *) -> ()              | 1:23 | no parameter follows the '*'",
        "aten::mm(*, Tensor a, *, int b) -> ()       | 1:23 | a second '*'",
        "aten::f(str s, ...) -> str                  | 1:16 | varargs are not supported",
        "aten::f(str s) -> ...                       | 1:19 | a varying number of results is not"
            + " supported",
        "aten::f(int a=\"x\") -> ()                  | 1:15 | '\"x\"' is not a valid int",
        "aten::f(int a=9223372036854775808) -> ()    | 1:15 | '9223372036854775808' does not fit 64"
            + " bits",
        "aten::f(int a=Median) -> ()                 | 1:15 | no constant 'Median'",
        "aten::f(Tensor a) -> Tensor $               | 1:29 | expected the end of the schema, not"
            + " '$'",
        "aten::f(Tensor(a!)[](b!) a) -> ()           | 1:21 | a second alias annotation on one"
            + " type",
        "aten::f(int[0] a) -> ()                     | 1:13 | a list of 0 elements",
        "aten::f(() a) -> ()                         | 1:9  | a tuple type without elements",
      })
  void saysWhatIsWrongAndWhere(String schema, String place, String problem) {
    assertThatThrownBy(() -> SchemaParser.parse(schema))
        .isInstanceOf(SchemaSyntaxException.class)
        .hasMessageStartingWith("<schema>:" + place + ": error[bad-schema]: " + problem + "\n");
  }

  @Test
  void refusesSchemasThatAreCutWithoutAnotherException() throws IOException {
    for (var text : schemas().toList()) {
      for (int end = text.length() % 3; end < text.length(); end += 3) {
        parseOrRefuse(text.substring(0, end));
      }
    }
  }

  @Test
  void refusesRandomTextWithoutAnotherException() {
    var random = new Random(20250611);
    var words =
        List.of(
            "aten",
            "::",
            "mm",
            "(",
            ")",
            "Tensor",
            "int",
            "[",
            "]",
            "?",
            "!",
            "a",
            "|",
            "->",
            "*",
            ",",
            "=",
            "1",
            "\"s\"",
            "'",
            "\\",
            "None",
            "Dict",
            "...",
            ".",
            "\u00e9",
            "\uD83D\uDE00",
            "\0",
            " ",
            "-");
    for (int i = 0; i < 2000; i++) {
      var text = new StringBuilder(random.nextBoolean() ? "aten::mm(" : "");
      for (int n = random.nextInt(12); n > 0; n--) {
        text.append(words.get(random.nextInt(words.size())));
      }
      parseOrRefuse(text.toString());
    }
  }

  @Test
  void refusesDeepNesting() {
    assertThatThrownBy(
            () -> SchemaParser.parse("a::b(" + "(".repeat(30_000) + "Tensor" + ")".repeat(30_000)))
        .isInstanceOf(SchemaSyntaxException.class)
        .hasMessageContaining("brackets nest deeper than 64 levels");
    assertThatThrownBy(() -> SchemaParser.parse("a::b(" + "x".repeat(100_000)))
        .isInstanceOf(SchemaSyntaxException.class)
        .hasMessageContaining("a schema of more than 65536 characters");
  }

  private static void parseOrRefuse(String text) {
    try {
      SchemaParser.parse(text);
    } catch (SchemaSyntaxException e) {
      assertThat(e.start()).as("for: %s", text).isBetween(0, text.length());
      assertThat(e.problem()).as("for: %s", text).isNotBlank();
    } catch (RuntimeException e) {
      throw new AssertionError("for: " + text, e);
    }
  }
}
