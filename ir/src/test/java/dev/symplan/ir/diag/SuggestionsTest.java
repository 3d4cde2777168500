package dev.symplan.ir.diag;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SuggestionsTest {

  @ParameterizedTest
  @CsvSource({
    "'', '', 0",
    "abc, abc, 0",
    "abc, '', 3",
    "'', ab, 2",
    "abc, abd, 1",
    "abc, acb, 1",
    "abc, bc, 1",
    "abc, abcd, 1",
    "kitten, sitting, 3",
    "ca, abc, 3",
    "graph, grpah, 1",
  })
  void countsEdits(String a, String b, int expected) {
    assertThat(Suggestions.distance(a, b)).isEqualTo(expected);
    assertThat(Suggestions.distance(b, a)).isEqualTo(expected);
  }

  @Test
  void findsTheClosestNameAndNoneThatIsFar() {
    var known = List.of("aten::mul", "aten::mm", "aten::bmm", "aten::softmax");

    assertThat(Suggestions.closest("aten::nm", known)).contains("aten::mm");
    assertThat(Suggestions.closest("aten::sfotmax", known)).contains("aten::softmax");
    assertThat(Suggestions.closest("prims::iota", known)).isEmpty();
    assertThat(Suggestions.closest("z", List.of("x", "y"))).isEmpty();
    assertThat(Suggestions.hint("aten::nm", known)).isEqualTo("did you mean 'aten::mm'?");
    assertThat(Suggestions.hint("other", known)).isEmpty();
  }
}
