package dev.symplan.planner.simulate;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.cost.CostModel.Crossing;
import java.util.Objects;

/** One collective of the ranks that meet in it, while {@link Simulation} carries it out. */
final class Flow {
  /** The players that come to it. */
  final ImmutableIntArray players;

  /** By player, which of its collectives it is. */
  private final ImmutableMap<Integer, Integer> positions;

  final Crossing crossing;

  /** How many of them have come. */
  int arrived;

  double firstArrival = Double.POSITIVE_INFINITY;
  double begin = Double.NaN;
  double end = Double.NaN;

  /** The rest that is to be sent, in µs of a rail that nothing else uses. */
  double left;

  /** The share of such a rail that it has now. */
  double rate;

  /** How long it had less than its rails' rates, as others used them. */
  double shared;

  /** Changes when the rate does, so that what was expected before is known to be out of date. */
  int version;

  Flow(ImmutableMap<Integer, Integer> positions, Crossing crossing) {
    this.players = ImmutableIntArray.copyOf(positions.keySet());
    this.positions = positions;
    this.crossing = crossing;
    this.left = crossing.rail();
  }

  /** {@return the collective of a player that it is} */
  int of(int player) {
    return Objects.requireNonNull(positions.get(player));
  }

  boolean isDone() {
    return !Double.isNaN(end);
  }

  boolean crosses() {
    return crossing.rail() > 0;
  }

  /** {@return the time from its begin to its end, in µs} */
  double micros() {
    return end - begin;
  }

  /** {@return how long the first rank waits for the last one, in µs} */
  double waited() {
    return begin - firstArrival;
  }
}
