package dev.symplan.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PythonLiteralsTest {

  /** The right column is what Python's repr gives. */
  @ParameterizedTest
  @CsvSource({
    "0.5, 0.5",
    "1, 1.0",
    "-2, -2.0",
    "0.0, 0.0",
    "-0.0, -0.0",
    "100, 100.0",
    "0.1, 0.1",
    "1e-4, 0.0001",
    "1e-5, 1e-05",
    "1.5e-5, 1.5e-05",
    "1e15, 1000000000000000.0",
    "1e16, 1e+16",
    "123456789012345680, 1.2345678901234568e+17",
    "1234567.25, 1234567.25",
    "1e22, 1e+22",
    "1e100, 1e+100",
    "2e23, 2e+23",
    "4.9e-324, 5e-324",
    "9.9e-324, 1e-323",
    "1.7976931348623157e308, 1.7976931348623157e+308",
    "-3.4028234663852886e+38, -3.4028234663852886e+38",
    "2.2250738585072014e-308, 2.2250738585072014e-308",
    "0.3333333333333333, 0.3333333333333333",
    "5e-4, 0.0005",
    "12e-6, 1.2e-05",
    "NaN, nan",
    "Infinity, inf",
    "-Infinity, -inf",
  })
  void writesFloatsAsPython(double value, String expected) {
    assertThat(PythonLiterals.repr(value)).isEqualTo(expected);
  }

  @Test
  void readsBackEveryFloat() {
    long seed = 7;
    var random = new Random(seed);
    for (int i = 0; i < 20_000; i++) {
      double value = Double.longBitsToDouble(random.nextLong());
      assertThat(PythonLiterals.parseFloat(PythonLiterals.repr(value)))
          .as("seed %s", seed)
          .isEqualTo(Double.valueOf(value));
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "plain",
        "a\"b",
        "a'b",
        "\\",
        "\n\r\t",
        "\0\u0001\u001f\u007f\u0085\u00a0",
        "é漢字",
        "\uD83D\uDE00",
        "\uD83D",
        "\u200b\ufeff\u2028",
        "İıI",
        "${}%s",
      })
  void readsBackEveryString(String value) {
    var literal = PythonLiterals.quote(value);

    assertThat(literal).startsWith("\"").endsWith("\"").doesNotContain("\n", "\0", "\u2028");
    assertThat(PythonLiterals.unquote(literal)).isEqualTo(value);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '~',
      value = {
        "'it\\'s'       | it's",
        "\"a\\\"b\"     | a\"b",
        "'\\x41\\u0042\\U00000043' | ABC",
        "'\\\\n'        | \\n",
        "\"\"           | ~~",
      })
  void readsEscapes(String literal, String expected) {
    assertThat(PythonLiterals.unquote(literal)).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "'\\q'",
        "'\\x4'",
        "'\\u12'",
        "'\\x+1'",
        "'\\x-1'",
        "'\\U00110000'",
        "'\\Uffffffff'"
      })
  void refusesOtherEscapes(String literal) {
    assertThatThrownBy(() -> PythonLiterals.unquote(literal))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
