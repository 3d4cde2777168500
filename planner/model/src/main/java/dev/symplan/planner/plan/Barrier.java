package dev.symplan.planner.plan;

import com.google.common.base.Ascii;
import com.google.common.base.Splitter;
import com.google.common.primitives.Ints;
import java.util.Arrays;
import java.util.Optional;

/** The synchronization of a group's ranks before, or after, a collective. */
public sealed interface Barrier {

  /** Which of the two barriers of a collective. */
  enum Edge {
    START,
    END;

    public String text() {
      return Ascii.toLowerCase(name());
    }
  }

  /** Not at all: the group has one rank, or the variant needs no barrier. */
  record None() implements Barrier {}

  /** The ranks of the group wait for each other. */
  record Own() implements Barrier {}

  /**
   * By another collective's own barrier: the same ranks meet there, and none of them touches, on
   * the way between there and here, what peers touch in this collective.
   *
   * @param collective its index in {@link RankPlan#collectives}: an earlier one's before this
   *     collective, a later one's after it
   * @param edge which of its barriers
   */
  record StandIn(int collective, Edge edge) implements Barrier {}

  /** {@return for example {@code own}, {@code none}, {@code end of 3}} */
  default String text() {
    return switch (this) {
      case None _ -> "none";
      case Own _ -> "own";
      case StandIn(int collective, var edge) -> edge.text() + " of " + collective;
    };
  }

  /** {@return the barrier that is written so} */
  static Optional<Barrier> ofText(String text) {
    if (text.equals("none")) {
      return Optional.of(new None());
    }
    if (text.equals("own")) {
      return Optional.of(new Own());
    }
    var words = Splitter.on(' ').splitToList(text);
    if (words.size() != 3 || !words.get(1).equals("of")) {
      return Optional.empty();
    }
    var edge =
        Arrays.stream(Edge.values()).filter(e -> e.text().equals(words.getFirst())).findAny();
    return edge.flatMap(
        e -> Optional.ofNullable(Ints.tryParse(words.get(2))).map(k -> new StandIn(k, e)));
  }
}
