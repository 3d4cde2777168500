package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SymbolsTest {
  private static final Symbols SYMBOLS =
      new Symbols(
          ImmutableMap.of("s77", 7L, "s0", 2L),
          ImmutableMap.of("s0", 100L, "u1", 9L),
          ImmutableIntArray.of());

  /** Expected values are Python's, with s77 = 7, s0 = 2, u1 = 9. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          12                        | 12
          s77                       | 7
          u1                        | 9
          4*s77                     | 28
          s77 - s0 - 1              | 4
          2 + 3*s77                 | 23
          -s77 + 10                 | 3
          -s77**2                   | -49
          (-s77)**2                 | 49
          10 - s77**2               | -39
          -(-s77)                   | 7
          --s77                     | 7
          s0**3*s77                 | 56
          s77//2                    | 3
          (-s77)//2                 | -4
          (s77 + 3)//4              | 2
          -7 % 4                    | 1
          Mod(s77, 4)               | 3
          PythonMod(s77 - 14, 4)    | 1
          FloorDiv(s77, 2)          | 3
          s77*s0/7                  | 2
          IntTrueDiv(s77*4, 2)      | 14
          Max(1, s77, s0)           | 7
          Min(s77, s0 + Max(1, 2))  | 4
          Identity(s77)             | 7
          """)
  void computesWhatSympyPrints(String expression, long value) {
    assertThat(SYMBOLS.size(TypeReader.size(expression))).isEqualTo(value);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          s77 >= 7     | true
          s77 > 7      | false
          s77 <= 6     | false
          s77 < s0*4   | true
          s77 == 7     | true
          s77 != 7     | false
          Eq(s77, 7)   | true
          Ne(s77, 7)   | false
          Eq(Mod(s77, 4), 0) | false
          Ge(s77, s0)  | true
          True         | true
          False        | false
          """)
  void compares(String expression, boolean holds) {
    assertThat(SYMBOLS.constant(TypeReader.size(expression))).isEqualTo(new Arg.Bool(holds));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "s77 +",
        "(s77",
        "s77)",
        "s77 s0",
        "Max(s77)",
        "sin(s77, s0)",
        "1.5*s77",
        "99999999999999999999",
        "s77//0",
        "s77 % 0",
        "s77/2",
        "s77**-1",
        "s77**99",
        "4611686018427387904*s77",
        "s77 < s0 < 3",
        "**",
        "\u0663"
      })
  void refusesWhatIsNoSize(String expression) {
    assertThatThrownBy(() -> SYMBOLS.constant(TypeReader.size(expression)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aConditionIsNoSize() {
    assertThatThrownBy(() -> SYMBOLS.size(TypeReader.size("s77 > 2")))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void namesTheSymbolThatHasNoValue() {
    assertThatThrownBy(() -> SYMBOLS.size(TypeReader.size("2*(s77 + s9)")))
        .isInstanceOfSatisfying(Symbols.Unknown.class, e -> assertThat(e.symbol()).isEqualTo("s9"));
  }

  @Test
  void endsOnDeepNesting() {
    assertThatThrownBy(() -> SYMBOLS.size(TypeReader.size("(".repeat(100_000) + "1")))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(SYMBOLS.size(TypeReader.size("-".repeat(100_000) + "1"))).isEqualTo(1);
  }

  @Test
  void findsSymbolsAsWords() {
    assertThat(TypeReader.type("f32[4*s77, 2][2, 1]").mentions("s77")).isTrue();
    assertThat(TypeReader.type("f32[4*s777, 2][s7, 1]").mentions("s77")).isFalse();
  }
}
