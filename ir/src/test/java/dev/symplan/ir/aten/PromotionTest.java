package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.base.Splitter;
import com.google.common.io.Resources;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpTypeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The rules for operands without a dimension and for plain numbers are in {@link RulesTest}. */
class PromotionTest {

  static Stream<String> rows() throws IOException {
    return Resources.readLines(Resources.getResource("ops/promotions.txt"), StandardCharsets.UTF_8)
        .stream()
        .filter(line -> !line.startsWith("#"));
  }

  private static DType dtype(String name) {
    return DType.ofShortName(name).orElseThrow();
  }

  @ParameterizedTest
  @MethodSource("rows")
  void promotesAsPyTorchDoes(String row) {
    var words = Splitter.on(' ').splitToList(row);
    var a = dtype(words.get(0));
    var b = dtype(words.get(1));
    if (words.get(2).equals("error")) {
      assertThatThrownBy(() -> Promotion.of(a, b)).isInstanceOf(OpTypeException.class);
    } else {
      assertThat(Promotion.of(a, b)).isEqualTo(dtype(words.get(2)));
    }
  }

  @Test
  void tableHoldsEveryPair() throws IOException {
    assertThat(rows()).hasSize(DType.values().length * DType.values().length);
  }
}
