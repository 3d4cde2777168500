package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Locale;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How far packings of many buffers are above their bound. */
class LargeProblemsTest {

  /**
   * @param most percent above the bound: what is reached, rounded up. It is the same on every
   *     machine
   */
  @ParameterizedTest
  @CsvSource({
    "TRAINING, 15000, 1, 0",
    "HEAVY_TAILED, 30000, 1, 0",
    "NESTED, 30000, 1, 0",
    "UNIFORM, 1500, 1, 3.3",
    "UNIFORM, 5000, 1, 0.06",
    "UNIFORM, 15000, 2, 0.27",
    "UNIFORM, 30000, 1, 0.03",
    "TILES, 5000, 2, 0.05",
    "TILES, 15000, 1, 0.27",
    "TILES, 30000, 2, 0.02",
    "BRANCHES, 15000, 1, 0.14",
    "BRANCHES, 30000, 1, 0.08",
    "CUT, 4000, 1, 13.8"
  })
  void arePackedNearTheirBound(LargeProblem shape, int buffers, long seed, double most) {
    var problem = shape.problem(buffers, seed);
    double greedily = excess(problem, PackOptions.DEFAULT.withSearchSteps(0));
    double excess = excess(problem, PackOptions.DEFAULT);
    System.out.printf(
        Locale.ROOT,
        "%s, %s buffers: %.3f%% above the bound greedily, %.3f%% searched%n",
        shape,
        problem.count(),
        greedily,
        excess);
    assertThat(excess).isLessThanOrEqualTo(most);
    assertThat(excess).isLessThanOrEqualTo(greedily);
    assertThat(excess < greedily).as("the search lowers it").isEqualTo(greedily > 0);
  }

  private static double excess(PackingProblem problem, PackOptions options) {
    var packing = Packer.pack(problem, options);
    PackingChecker.check(problem, packing);
    return 100.0 * (packing.height() - problem.lowerBound()) / problem.lowerBound();
  }
}
