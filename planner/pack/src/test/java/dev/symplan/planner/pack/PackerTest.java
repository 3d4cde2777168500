package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PackerTest {

  @Test
  void packsTheExampleOfMinimalloc() {
    var problem = problem(0, 3, 4, 3, 9, 4, 0, 9, 4, 9, 21, 4, 0, 21, 4);
    assertThat(packed(problem).height()).isEqualTo(12);
  }

  @Test
  void packsNothing() {
    var packing = packed(PackingProblem.of(List.of()));
    assertThat(packing.count()).isZero();
    assertThat(packing.height()).isZero();
    assertThat(packing.isOptimal()).isTrue();
  }

  @Test
  void packsOneBufferAtTheBottom() {
    var packing = packed(problem(Integer.MIN_VALUE, Integer.MAX_VALUE, 100));
    assertThat(packing.offset(0)).isZero();
    assertThat(packing.height()).isEqualTo(100);
  }

  @Test
  void stacksBuffersThatAllOverlap() {
    var problem = PackingProblem.builder();
    for (int i = 0; i < 1000; i++) {
      problem.add(i, 2000 - i, 1 + i % 7, 1);
    }
    var packing = packed(problem.build());
    assertThat(packing.isOptimal()).isTrue();
  }

  @Test
  void reusesTheSamePlaceForBuffersThatNeverOverlap() {
    var problem = PackingProblem.builder();
    for (int i = 0; i < 1000; i++) {
      problem.add(3 * i, 3 * i + 3, 1 + i % 7, 1);
    }
    var packing = packed(problem.build());
    assertThat(packing.height()).isEqualTo(7);
    assertThat(packing.offsets().asList()).containsOnly(0L);
  }

  @Test
  void packsHugeSizes() {
    long huge = 1L << 47;
    var problem = problem(0, 2, huge, 1, 3, huge - 1, 2, 4, huge, 3, 5, huge + 1);
    var packing = packed(problem);
    assertThat(packing.height()).isEqualTo(2 * huge + 1);
    assertThat(packing.isOptimal()).isTrue();
  }

  @Test
  void refusesMoreThanALongHolds() {
    var problem = PackingProblem.builder();
    for (int i = 0; i < 1000; i++) {
      problem.add(0, 1, 1L << 56, 1);
    }
    var built = problem.build();
    assertThatThrownBy(() -> Packer.pack(built))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("2^60");
  }

  @Test
  void refusesBuffersThatCannotBe() {
    assertThatThrownBy(() -> new Item(1, 1, 1, 1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Item(0, 1, 0, 1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Item(0, 1, 1, 3)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Item(0, 1, 1, 0)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void roundsSizesUpToTheAlignment() {
    var problem = PackingProblem.builder().add(0, 2, 100, 128).add(1, 3, 1, 128).build();
    var packing = packed(problem);
    assertThat(problem.lowerBound()).isEqualTo(256);
    assertThat(packing.height()).isEqualTo(256);
  }

  @Test
  void keepsEveryBuffersOwnAlignment() {
    for (int seed = 0; seed < 300; seed++) {
      var random = new Random(seed);
      var problem = PackingProblem.builder();
      int n = 1 + random.nextInt(30);
      for (int i = 0; i < n; i++) {
        int start = random.nextInt(20);
        long alignment = 1L << random.nextInt(8);
        problem.add(start, start + 1 + random.nextInt(8), 1 + random.nextInt(300), alignment);
      }
      packed(problem.build());
    }
  }

  @Test
  void packsLargeRandomProblems() {
    for (int seed = 0; seed < 6; seed++) {
      var problem = random(new Random(seed), 1000 * (1 + seed % 5), 500, 50, 100);
      var packing = Packer.pack(problem, PackOptions.DEFAULT.withSearchSteps(2_000));
      PackingChecker.check(problem, packing);
    }
  }

  @Test
  void givesTheSameOffsetsEveryTime() {
    var problem = random(new Random(1), 400, 300, 30, 1000);
    var options = PackOptions.DEFAULT.withSearchSteps(5_000);
    var all =
        IntStream.range(0, 4)
            .parallel()
            .mapToObj(k -> Packer.pack(problem, options).offsets())
            .distinct()
            .toList();
    assertThat(all).hasSize(1);
  }

  @Test
  void stopsAtTheCapacity() {
    var problem = problem(0, 2, 5, 1, 3, 5, 4, 5, 3);
    var packing = Packer.pack(problem, PackOptions.DEFAULT.withCapacity(100));
    PackingChecker.check(problem, packing);
    assertThat(packing.height()).isLessThanOrEqualTo(100);
    var impossible = Packer.pack(problem, PackOptions.DEFAULT.withCapacity(9));
    assertThat(impossible.height()).isEqualTo(10);
    assertThat(impossible.lowerBound()).isEqualTo(10);
  }

  private static Packing packed(PackingProblem problem) {
    var packing = Packer.pack(problem);
    PackingChecker.check(problem, packing);
    return packing;
  }

  /** Rows of start, end, size. */
  private static PackingProblem problem(long... rows) {
    var problem = PackingProblem.builder();
    for (int i = 0; i < rows.length; i += 3) {
      problem.add((int) rows[i], (int) rows[i + 1], rows[i + 2], 1);
    }
    return problem.build();
  }

  static PackingProblem random(Random random, int count, int steps, int width, int size) {
    var problem = PackingProblem.builder();
    for (int i = 0; i < count; i++) {
      int start = random.nextInt(steps);
      problem.add(start, start + 1 + random.nextInt(width), 1 + random.nextInt(size), 1);
    }
    return problem.build();
  }
}
