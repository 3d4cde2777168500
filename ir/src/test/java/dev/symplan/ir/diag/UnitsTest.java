package dev.symplan.ir.diag;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

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

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "1000000, 1000000",
    "17 B, 17",
    "512MiB, 536870912",
    "1.5 GiB, 1610612736",
    "24GiB, 25769803776",
    "999999999TiB, 9223372036854775807"
  })
  void readsSizes(String text, long bytes) {
    assertThat(Units.parseBytes(text)).hasValue(bytes);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "GiB", "-1", "1e9", "24GB", "24 gib", "1.GiB", "١GiB", "1 2"})
  void sizesHaveOneForm(String text) {
    assertThat(Units.parseBytes(text)).isEmpty();
  }
}
