package dev.symplan.ir.diag;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class UnitsTest {
  @ParameterizedTest
  @CsvSource({
    "0, step, 0 steps",
    "1, step, 1 step",
    "2, copy, 2 copies",
    "2, entry, 2 entries",
    "1, index, 1 index",
    "2, index, 2 indices",
    "3, pass, 3 passes",
    "2, smaller buffer, 2 smaller buffers"
  })
  void countsThings(long count, String noun, String text) {
    assertThat(Units.count(count, noun)).isEqualTo(text);
  }
}
