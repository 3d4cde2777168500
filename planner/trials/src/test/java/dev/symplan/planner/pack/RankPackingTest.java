package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.primitives.ImmutableLongArray;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RankPackingTest {

  private static final PackingProblem NOTHING = PackingProblem.builder().build();

  @Test
  void putsLocalBuffersIntoHoles() {
    var symmetric = PackingProblem.builder().add(0, 2, 100, 1).add(4, 6, 100, 1).build();
    var local = PackingProblem.builder().add(2, 4, 60, 1).add(0, 6, 10, 1).build();
    var packing = packed(List.of(symmetric), List.of(local));
    assertThat(packing.symmetricBytes()).isEqualTo(100);
    assertThat(packing.locals().getFirst().inFirstArena(0)).isTrue();
    assertThat(packing.locals().getFirst().height()).isEqualTo(10);
  }

  @Test
  void takesOneArenaWhereTwoWouldTakeMore() {
    // Apart: 40, and 100 besides that do not fit into its holes. 110 are live at most.
    var symmetric = PackingProblem.builder().add(0, 2, 40, 1).add(2, 4, 10, 1).build();
    var local = PackingProblem.builder().add(2, 4, 100, 1).build();
    var packing = packed(List.of(symmetric), List.of(local));
    assertThat(packing.symmetricBytes()).isEqualTo(110);
    assertThat(packing.symmetricBound()).isEqualTo(40);
    assertThat(packing.totalBytes()).isEqualTo(110);
    assertThat(packing.locals().getFirst().inFirstArena(0)).isTrue();
  }

  @Test
  void keepsTheSymmetricArenaSmallWhereThatCostsNothing() {
    var symmetric = PackingProblem.builder().add(0, 4, 40, 1).build();
    var local = PackingProblem.builder().add(0, 4, 100, 1).build();
    var packing = packed(List.of(symmetric), List.of(local));
    assertThat(packing.symmetricBytes()).isEqualTo(40);
    assertThat(packing.locals().getFirst().height()).isEqualTo(100);
  }

  @Test
  void laysTheSymmetricArenaOutForTheRankThatNeedsMost() {
    var symmetric = PackingProblem.builder().add(0, 2, 40, 1).add(2, 4, 10, 1).build();
    var small = PackingProblem.builder().add(3, 4, 5, 1).build();
    var large = PackingProblem.builder().add(2, 4, 100, 1).build();
    var packing = packed(List.of(symmetric, symmetric, symmetric), List.of(small, large, NOTHING));
    assertThat(packing.totalBytes()).isEqualTo(110);
    assertThat(packing.locals().get(0).height()).isZero();
  }

  /**
   * Packed for either rank alone, the symmetric buffers are in the way of the other's local one.
   */
  @Test
  void packsAllRanksAtOnceWhereOneLeavesNoRoomForTheOther() {
    var symmetric = PackingProblem.builder().add(0, 3, 6, 1).add(3, 4, 4, 1).build();
    var one = PackingProblem.builder().add(2, 5, 3, 1).build();
    var other = PackingProblem.builder().add(3, 6, 6, 1).build();
    var packing = packed(List.of(symmetric, symmetric), List.of(one, other));
    assertThat(packing.totalBytes()).isEqualTo(10);
  }

  @Test
  void ranksOfFewBuffersNeedNoMoreThanIsLive() {
    int above = 0;
    for (int seed = 0; seed < 300; seed++) {
      var random = new Random(seed);
      var shape = PackerTest.random(random, 4, 8, 4, 8);
      var symmetric = List.of(shape, shape);
      var local =
          List.of(
              PackerTest.random(random, random.nextInt(6), 8, 4, 8),
              PackerTest.random(random, random.nextInt(6), 8, 4, 8));
      long live = 0;
      for (int rank = 0; rank < 2; rank++) {
        live = Math.max(live, symmetric.get(rank).concat(local.get(rank)).lowerBound());
      }
      above += packed(symmetric, local).totalBytes() > live ? 1 : 0;
    }
    assertThat(above).isZero();
  }

  @Test
  void hasOnlyALocalArenaWithoutSymmetricBuffers() {
    var local = PackingProblem.builder().add(0, 4, 100, 1).build();
    var packing = packed(List.of(NOTHING), List.of(local));
    assertThat(packing.symmetricBytes()).isZero();
    assertThat(packing.locals().getFirst().height()).isEqualTo(100);
  }

  @Test
  void refusesRanksWithDifferentSymmetricBuffers() {
    var one = PackingProblem.builder().add(0, 4, 100, 1).build();
    var other = PackingProblem.builder().add(0, 4, 101, 1).build();
    assertThatThrownBy(() -> RankPacking.of(List.of(one, other), List.of(NOTHING, NOTHING)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void packsRandomRanks() {
    int together = 0;
    for (int seed = 0; seed < 300; seed++) {
      var random = new Random(seed);
      int ranks = 1 + random.nextInt(3);
      var shape = PackerTest.random(random, random.nextInt(12), 20, 6, 30);
      var symmetric = new ArrayList<PackingProblem>();
      var local = new ArrayList<PackingProblem>();
      for (int rank = 0; rank < ranks; rank++) {
        symmetric.add(moved(shape, random));
        local.add(PackerTest.random(random, random.nextInt(20), 20, 6, 30));
      }
      var packing = packed(symmetric, local);
      together +=
          packing.symmetricBytes() > Packer.pack(PackingProblem.union(symmetric)).height() ? 1 : 0;
      if (ranks == 1) {
        var whole = Packer.pack(symmetric.getFirst().concat(local.getFirst()));
        assertThat(packing.totalBytes())
            .as("seed %s", seed)
            .isLessThanOrEqualTo(shape.count() == 0 ? Long.MAX_VALUE : whole.height());
      }
    }
    assertThat(together).as("programs with a grown symmetric arena").isBetween(10, 290);
  }

  /** The same buffers, live a little earlier or later. */
  private static PackingProblem moved(PackingProblem problem, Random random) {
    var moved = PackingProblem.builder();
    for (var b : problem.items()) {
      int start = b.start() + random.nextInt(3);
      int end = Math.max(start + 1, b.end() + random.nextInt(3));
      moved.add(start, end, b.size(), b.alignment());
    }
    return moved.build();
  }

  private static RankPacking packed(List<PackingProblem> symmetric, List<PackingProblem> local) {
    var packing = RankPacking.of(symmetric, local);
    for (int rank = 0; rank < local.size(); rank++) {
      PackingChecker.check(
          symmetric.get(rank),
          packing.symmetricOffsets().toArray(),
          packing.symmetricBytes(),
          local.get(rank),
          packing.locals().get(rank));
    }
    checkApart(PackingProblem.union(symmetric), packing.symmetricOffsets());
    return packing;
  }

  /**
   * Buffers that any two ranks hold at the same step lie apart, as the arena is the same on all.
   */
  private static void checkApart(PackingProblem common, ImmutableLongArray offsets) {
    for (int i = 0; i < common.count(); i++) {
      for (int j = 0; j < i; j++) {
        var a = common.item(i);
        var b = common.item(j);
        if (a.overlaps(b)) {
          boolean apart =
              offsets.get(i) + a.size() <= offsets.get(j)
                  || offsets.get(j) + b.size() <= offsets.get(i);
          assertThat(apart).as("buffers %s and %s", i, j).isTrue();
        }
      }
    }
  }
}
