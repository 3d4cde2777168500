package dev.symplan.runtime.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.planner.cost.Work;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.profile.ProfiledStep;
import dev.symplan.runtime.profile.ProfiledStep.Traffic;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class CommunicationTest {
  private static ProfiledStep compute(double begin, double end) {
    return new ProfiledStep(
        new Activity(0, StreamKind.COMPUTE, "y", "", begin, end),
        0,
        "aten::mm",
        "aten::mm",
        0,
        Optional.of(new Work(0, 0, Optional.empty())),
        Optional.empty());
  }

  private static ProfiledStep collective(double begin, double end, double waited) {
    return new ProfiledStep(
        new Activity(0, StreamKind.COMM, "r", "", begin, end),
        0,
        "all_reduce",
        "all_reduce two_shot",
        0,
        Optional.empty(),
        Optional.of(new Traffic(0, "two_shot", 8, 1, waited)));
  }

  @Test
  void isExposedWhereNothingElseRuns() {
    assertThat(Communication.of(List.of(compute(0, 10), collective(10, 14, 1), compute(14, 20))))
        .isEqualTo(new Communication(4, 4, 1));
    assertThat(Communication.of(List.of(compute(0, 10), collective(2, 7, 0))))
        .isEqualTo(new Communication(5, 0, 0));
  }

  @Test
  void countsTimeOnce() {
    // From 8 to 9 and from 11 to 15 there are collectives alone, in two streams at once.
    assertThat(
            Communication.of(
                List.of(
                    collective(6, 13, 0.5), compute(9, 11), collective(12, 15, 2), compute(0, 8))))
        .isEqualTo(new Communication(9, 5, 2.5));
  }

  @Test
  void isNothingWithoutCollectives() {
    assertThat(Communication.of(List.of(compute(0, 10)))).isEqualTo(new Communication(0, 0, 0));
    assertThat(Communication.of(List.of())).isEqualTo(new Communication(0, 0, 0));
  }
}
