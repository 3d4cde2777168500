package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SizeReaderTest {

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '"',
      value = {
        "Symbol('s77', positive=True, integer=True); s77",
        "Integer(-3); -3",
        "Add(Mul(Integer(8), Symbol('s77', positive=True, integer=True)), Integer(-1)); 8*s77 + -1",
        "Mul(Integer(4), Add(Symbol('a'), Integer(3))); 4*(a + 3)",
        "Mul(Rational(3, 2), Symbol('a'), Symbol('b')); 3*a*b/2",
        "Mul(Rational(1, 2), Rational(1, 3), Symbol('a')); a/(2*3)",
        "Add(Mul(Rational(1, 2), Symbol('a')), Integer(1)); a/2 + 1",
        "Pow(Add(Symbol('a'), Integer(1)), Integer(2)); (a + 1)**2",
        "Mul(Pow(Symbol('a'), Integer(2)), Symbol('b')); a**2*b",
        "Mul(Integer(2), Pow(Mul(Rational(1, 2), Symbol('a')), Integer(2))); 2*(a/2)**2",
        "FloorDiv(Add(Symbol('a'), Integer(3)), Integer(2)); FloorDiv(a + 3, 2)",
        "floor(Mul(Rational(1, 2), Symbol('a'))); FloorDiv(a, 2)",
        "ModularIndexing(Symbol('a'), Integer(2), Integer(3)); Mod(FloorDiv(a, 2), 3)",
        "Max(Integer(1), Symbol('u0', integer=True)); Max(1, u0)",
        "Equality(Mod(Symbol('a'), Integer(4)), Integer(0)); Mod(a, 4) == 0",
        "LessThan(Symbol('a'), Add(Symbol('b'), Integer(1))); a <= b + 1",
        "true; True",
      })
  void readsWhatSreprPrints(String srepr, String infix) {
    assertThat(SizeReader.read(srepr).text()).isEqualTo(infix);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "Add(",
        "Add()",
        "Symbol('a",
        "Symbol('a b')",
        "a b",
        "Rational(1)",
        "Pow(a)",
        "(",
        "Mul()",
        "-",
        "Symbol(=)"
      })
  void refusesOthers(String text) {
    assertThatThrownBy(() -> SizeReader.read(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void refusesDeepNesting() {
    assertThatThrownBy(() -> SizeReader.read("Max(".repeat(5000)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("nested");
  }
}
