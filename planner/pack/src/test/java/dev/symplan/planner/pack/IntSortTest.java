package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IntSortTest {
  /** Keys of both ways to sort: short ones, and negative and large ones; 5 different ones. */
  @ParameterizedTest
  @ValueSource(longs = {0, 1, 1L << 40, 1L << 58, 1L << 60, Long.MIN_VALUE / 5})
  void keysAscendAndEqualOnesStayInOrder(long unit) {
    var random = new Random(unit);
    for (int count = 0; count < 200; count++) {
      var keys = random.longs(count, 0, 5).map(k -> k * unit).toArray();
      var positions = random.ints(count, 0, Math.max(1, count)).toArray();
      var expected =
          Arrays.stream(positions)
              .boxed()
              .sorted(Comparator.comparingLong(p -> keys[p]))
              .mapToInt(p -> p)
              .toArray();
      IntSort.sortBy(positions, p -> keys[p]);
      assertThat(positions).isEqualTo(expected);
    }
  }
}
