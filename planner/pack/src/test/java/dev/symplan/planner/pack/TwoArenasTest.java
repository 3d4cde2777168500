package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Random;
import org.junit.jupiter.api.Test;

class TwoArenasTest {

  private static final PackingProblem NOTHING = PackingProblem.builder().build();

  @Test
  void putsBuffersIntoHolesInTime() {
    var fixed = PackingProblem.builder().add(0, 2, 100, 1).add(4, 6, 100, 1).build();
    var free = PackingProblem.builder().add(2, 4, 100, 1).build();
    var packing = packed(fixed, new long[] {0, 0}, 100, free);
    assertThat(packing.inFirstArena(0)).isTrue();
    assertThat(packing.height()).isZero();
  }

  @Test
  void putsBuffersIntoHolesBetweenOffsets() {
    var fixed = PackingProblem.builder().add(0, 9, 10, 1).add(0, 9, 10, 1).build();
    var free = PackingProblem.builder().add(1, 5, 30, 1).add(2, 8, 40, 1).build();
    var packing = packed(fixed, new long[] {30, 80}, 90, free);
    assertThat(packing.height()).isZero();
    assertThat(packing.offset(0)).isZero();
    assertThat(packing.offset(1)).isEqualTo(40);
  }

  @Test
  void neverStraddlesTheArenas() {
    var free = PackingProblem.builder().add(0, 1, 60, 1).add(0, 1, 60, 1).build();
    var packing = packed(NOTHING, new long[0], 100, free);
    assertThat(packing.height()).isEqualTo(60);
    assertThat(packing.isOptimal()).as("search proves it, as 20 bytes over would do").isTrue();
  }

  @Test
  void leavesOutsideWhatIsLargerThanTheArena() {
    var free = PackingProblem.builder().add(0, 1, 101, 1).add(0, 1, 100, 1).build();
    var packing = packed(NOTHING, new long[0], 100, free);
    assertThat(packing.inFirstArena(0)).isFalse();
    assertThat(packing.inFirstArena(1)).isTrue();
    assertThat(packing.height()).isEqualTo(101);
  }

  @Test
  void packsAloneWhereThereIsNoFirstArena() {
    var free = PackingProblem.builder().add(0, 1, 5, 1).build();
    assertThat(packed(NOTHING, new long[0], 0, free).height()).isEqualTo(5);
    assertThat(packed(NOTHING, new long[0], 9, NOTHING).height()).isZero();
  }

  @Test
  void alignsInsideHoles() {
    var fixed = PackingProblem.builder().add(0, 4, 1, 1).add(0, 4, 1, 1).build();
    var free = PackingProblem.builder().add(0, 4, 128, 128).build();
    assertThat(packed(fixed, new long[] {0, 255}, 256, free).height()).isEqualTo(128);
    assertThat(packed(fixed, new long[] {0, 256}, 257, free).height()).isZero();
  }

  @Test
  void refusesFixedBuffersThatLeaveTheArena() {
    var fixed = PackingProblem.builder().add(0, 4, 10, 1).build();
    assertThatThrownBy(() -> Packer.packInto(fixed, new long[] {91}, 100, NOTHING))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void packsRandomProblems() {
    for (int seed = 0; seed < 150; seed++) {
      var random = new Random(seed);
      int scale = seed < 140 ? 1 : 40;
      var fixed = PackerTest.random(random, scale * random.nextInt(20), 20 * scale, 8, 30);
      var free = PackerTest.random(random, scale * random.nextInt(30), 20 * scale, 8, 30);
      var first = Packer.pack(fixed);
      packed(fixed, first.offsets().toArray(), first.height() + random.nextInt(20), free);
    }
  }

  private static Packing packed(
      PackingProblem fixed, long[] offsets, long arena, PackingProblem free) {
    var packing = Packer.packInto(fixed, offsets, arena, free);
    PackingChecker.check(fixed, offsets, arena, free, packing);
    return packing;
  }
}
