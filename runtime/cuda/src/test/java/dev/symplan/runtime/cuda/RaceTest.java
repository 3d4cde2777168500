package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Races of runners whose times are made up, on a clock that goes on by a second for each. */
class RaceTest {
  private final List<Integer> measured = new ArrayList<>();

  /** Times of each runner: the first round, then all others. */
  private int winner(double[][] times, int seconds) {
    return Race.winner(
        times.length,
        i -> {
          int before = (int) measured.stream().filter(other -> other == i).count();
          measured.add(i);
          return times[i][Math.min(before, times[i].length - 1)];
        },
        () -> measured.size() * 1_000_000_000L,
        Duration.ofSeconds(seconds));
  }

  @Test
  void fastestWins() {
    assertThat(winner(new double[][] {{5}, {3}, {4}}, 1000)).isEqualTo(1);
  }

  @Test
  void firstWinsWhereChanceDecides() {
    assertThat(winner(new double[][] {{100.9}, {100}, {100.4}}, 1000)).isZero();
    assertThat(winner(new double[][] {{101.1}, {100}, {100.4}}, 1000)).isEqualTo(1);
  }

  @Test
  void laterRoundsCount() {
    assertThat(winner(new double[][] {{10}, {12, 9}}, 1000)).isEqualTo(1);
  }

  @Test
  void clearlySlowerOnesRunOnce() {
    assertThat(winner(new double[][] {{10}, {14, 1}, {11}}, 1000)).isZero();
    assertThat(measured).filteredOn(i -> i == 1).hasSize(1);
    assertThat(measured).filteredOn(i -> i == 2).hasSizeGreaterThan(1);
  }

  @Test
  void onlyOneRunsOnce() {
    assertThat(winner(new double[][] {{10}}, 1000)).isZero();
    assertThat(measured).hasSize(1);
  }

  @Test
  void timeIsLimited() {
    assertThat(winner(new double[][] {{10}, {9}, {1}}, 2)).isEqualTo(1);
    assertThat(measured).containsExactly(0, 1);
  }

  @Test
  void oneRunsAtLeast() {
    assertThat(winner(new double[][] {{10}, {9}}, 0)).isZero();
  }

  /** The second would win if its time in the round that was not completed counted. */
  @Test
  void incompleteRoundDoesNotCount() {
    assertThat(winner(new double[][] {{12, 5}, {11, 12}, {10, 5}}, 4)).isEqualTo(2);
    assertThat(measured).containsExactly(0, 1, 2, 0);
  }
}
