package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Ejection keeps packings valid, lowers them, and leaves alone what it must. */
class EjectionTest {
  private static final int PROBLEMS = 1_000;

  @Test
  void reachesTheLeastHeightOfSmallProblems() {
    int reached = 0;
    int lowered = 0;
    for (int seed = 0; seed < PROBLEMS; seed++) {
      var problem = random(new Random(seed), 7);
      var offsets = stacked(problem);
      var items = items(problem);
      long before = items.height(offsets);
      new Ejection(items, offsets, new BitSet(), Gap.NONE, 2_000, () -> false).lower(0);
      long height = items.height(offsets);
      PackingChecker.check(problem, new Packing(offsets, new BitSet(), height, items.maxLive()));
      long least = BruteForce.height(problem);
      assertThat(height).as("seed %s", seed).isBetween(least, before);
      reached += height == least ? 1 : 0;
      lowered += height < before ? 1 : 0;
    }
    assertThat(lowered).isGreaterThan(PROBLEMS / 2);
    assertThat(reached).isGreaterThan(PROBLEMS * 9 / 10);
  }

  @Test
  void movesNothingImmovableAndKeepsTheGapFree() {
    int lowered = 0;
    for (int seed = 0; seed < PROBLEMS; seed++) {
      var problem = random(new Random(seed), 40);
      var offsets = stacked(problem);
      var items = items(problem);
      var immovable = new BitSet();
      long arena = 0;
      for (int i = 0; i < items.count / 3; i++) {
        immovable.set(i);
        arena = Math.max(arena, offsets[i] + items.size[i]);
      }
      var gap = new Gap(arena, Item.alignUp(arena + 1, 8));
      for (int i = 0; i < items.count; i++) {
        offsets[i] += immovable.get(i) ? 0 : gap.end();
      }
      var before = offsets.clone();
      new Ejection(items, offsets, immovable, gap, 500, () -> false).lower(gap.end());
      var placed = new ArrayList<PackingChecker.Placed>();
      for (int i = 0; i < items.count; i++) {
        placed.add(new PackingChecker.Placed(problem.item(i), offsets[i]));
        if (immovable.get(i)) {
          assertThat(offsets[i]).as("seed %s", seed).isEqualTo(before[i]);
        } else {
          boolean inFirst = offsets[i] + items.size[i] <= gap.begin();
          assertThat(inFirst || offsets[i] >= gap.end()).as("seed %s", seed).isTrue();
        }
      }
      PackingChecker.checkArena(placed, items.height(before));
      lowered += items.height(offsets) < items.height(before) ? 1 : 0;
    }
    assertThat(lowered).isGreaterThan(PROBLEMS / 2);
  }

  @Test
  void doesNothingWithoutSteps() {
    var problem = random(new Random(1), 40);
    var offsets = stacked(problem);
    var before = offsets.clone();
    new Ejection(items(problem), offsets, new BitSet(), Gap.NONE, 0, () -> false).lower(0);
    assertThat(offsets).isEqualTo(before);
  }

  private static Items items(PackingProblem problem) {
    return Items.of(problem, Sections.of(problem), 0, problem.count());
  }

  private static PackingProblem random(Random random, int most) {
    var problem = PackingProblem.builder();
    int count = 3 + random.nextInt(most - 2);
    for (int i = 0; i < count; i++) {
      int start = random.nextInt(8);
      long alignment = 1L << random.nextInt(4);
      problem.add(start, start + 1 + random.nextInt(5), 1 + random.nextInt(20), alignment);
    }
    return problem.build();
  }

  /** All items above each other, whether they meet in time or not. */
  private static long[] stacked(PackingProblem problem) {
    var offsets = new long[problem.count()];
    long top = 0;
    for (int i = 0; i < offsets.length; i++) {
      offsets[i] = Item.alignUp(top, problem.alignment(i));
      top = offsets[i] + problem.paddedSize(i);
    }
    return offsets;
  }
}
