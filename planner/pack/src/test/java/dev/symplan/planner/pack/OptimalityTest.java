package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

/** Small problems are packed as low as brute force can. */
class OptimalityTest {

  @Test
  void packsSmallProblemsOptimally() {
    int aboveMaxLive = 0;
    for (int seed = 0; seed < 3000; seed++) {
      var problem = random(new Random(seed), 7, seed % 3 == 0);
      var packing = Packer.pack(problem);
      PackingChecker.check(problem, packing);
      assertThat(packing.height()).as("seed %s", seed).isEqualTo(BruteForce.height(problem));
      assertThat(packing.isOptimal()).as("seed %s", seed).isTrue();
      aboveMaxLive += packing.height() > problem.lowerBound() ? 1 : 0;
    }
    assertThat(aboveMaxLive).as("problems where max-live is not reached").isPositive();
  }

  @Test
  void packsSmallProblemsOptimallyIntoTwoArenas() {
    int usedSecond = 0;
    for (int seed = 0; seed < 1000; seed++) {
      var random = new Random(seed);
      boolean aligned = seed % 3 == 0;
      var fixed = random(random, 4, aligned);
      var free = random(random, 5, aligned);
      var first = Packer.pack(fixed);
      long arena = first.height() + random.nextInt(4);
      var offsets = first.offsets().toArray();
      var packing = Packer.packInto(fixed, offsets, arena, free);
      PackingChecker.check(fixed, offsets, arena, free, packing);
      assertThat(packing.height())
          .as("seed %s", seed)
          .isEqualTo(BruteForce.height(fixed, offsets, arena, free));
      usedSecond += packing.height() > 0 ? 1 : 0;
    }
    assertThat(usedSecond).as("problems that need the second arena").isBetween(1, 999);
  }

  @Test
  void saysThatACapacityIsTooSmall() {
    for (int seed = 0; seed < 1000; seed++) {
      var problem = random(new Random(seed), 7, false);
      long least = BruteForce.height(problem);
      var options = PackOptions.DEFAULT.withCapacity(least - 1);
      var packing = Packer.pack(problem, options);
      PackingChecker.check(problem, packing);
      assertThat(packing.lowerBound()).as("seed %s", seed).isEqualTo(least);
      assertThat(Packer.pack(problem, options.withCapacity(least)).height())
          .as("seed %s", seed)
          .isEqualTo(least);
    }
  }

  private static PackingProblem random(Random random, int most, boolean aligned) {
    var problem = PackingProblem.builder();
    int count = 1 + random.nextInt(most);
    for (int i = 0; i < count; i++) {
      int start = random.nextInt(8);
      long alignment = aligned ? 1L << random.nextInt(4) : 1;
      problem.add(start, start + 1 + random.nextInt(5), 1 + random.nextInt(9), alignment);
    }
    return problem.build();
  }
}
