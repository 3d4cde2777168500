package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Exact search finds the packings that {@link CutRectangle} has cut up. */
class HardInstancesTest {
  private static final int SEEDS = 5;
  private static final PackOptions OPTIONS =
      PackOptions.DEFAULT.withSearchSteps(150_000).withCapacity(CutRectangle.CAPACITY);

  @ParameterizedTest
  @CsvSource({
    "150, 1, 0, 0",
    "250, 1, 0, 0",
    "150, 16, 0, 0",
    "200, 1, 0.3, 0",
    "200, 1, 0, 0.15",
    "150, 1, 0.2, 0.2"
  })
  void fit(int buffers, int grid, double shortened, double lowered) {
    for (int seed = 0; seed < SEEDS; seed++) {
      var problem = new CutRectangle(buffers, grid, shortened, lowered).problem(new Random(seed));
      var packing = Packer.pack(problem, OPTIONS);
      assertThat(packing.height()).as("seed %s", seed).isLessThanOrEqualTo(CutRectangle.CAPACITY);
      PackingChecker.check(problem, packing);
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "2, 1", "3, 2", "4, 1", "5, 1", "6, 2", "7, 4", "8, 1", "14, 4", "15, 8"})
  void runsGrowAsLubysSequence(long position, long length) {
    assertThat(SearchPortfolio.luby(position)).isEqualTo(length);
  }
}
