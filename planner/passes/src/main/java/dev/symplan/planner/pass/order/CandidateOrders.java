package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Precedence;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * Other orders of a graph's ops, that need less memory at the peak by prediction. Names, positions
 * in the source, inputs and outputs stay, and so does the order of {@link Precedence}.
 */
public final class CandidateOrders {

  /** How far ops may move from the given order. */
  public enum Freedom {
    /** Wherever their operands and readers allow. */
    ANYWHERE,
    /** Not across a collective, what it waits for, or what waits for it. */
    WITHIN_WINDOWS
  }

  /** Up to so many sets of ops, small graphs get the best order there is. */
  private static final int MAX_SETS = 1 << 14;

  /** A change of the order must be worth it: this part of the memory. */
  public static final double MIN_GAIN = 0.01;

  /**
   * The gain that an order must have by prediction to be looked at: half of what it must gain in
   * the end, as predictions are not exact, and each look plans the whole graph.
   */
  private static final double MIN_PREDICTED = MIN_GAIN / 2;

  /** How many units may be looked at to improve an order. */
  private static final long WORK = 8_000_000;

  private CandidateOrders() {}

  /**
   * {@return the graph in orders that need less memory at the peak than the given one, by
   * prediction; what needs least comes first}
   */
  public static ImmutableList<Graph> candidates(Analyses ranked, Freedom freedom) {
    var free = WorkUnits.of(ranked);
    var units =
        switch (freedom) {
          case ANYWHERE -> free;
          case WITHIN_WINDOWS -> free.withinWindows();
        };
    double most = MemoryProfile.of(units, units.given()).peak() * (1 - MIN_PREDICTED);
    return orders(units, MAX_SETS).stream()
        .filter(order -> MemoryProfile.of(units, order).peak() <= most)
        .map(units::inOrder)
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * {@return orders that need less memory at the peak than the given one; the lowest first}
   *
   * @param mostSets how many sets of units {@link ExactOrder} may keep
   */
  public static List<int[]> orders(WorkUnits units, int mostSets) {
    var given = units.given();
    var atFirst = MemoryProfile.of(units, given);
    ListMultimap<Long, int[]> found = MultimapBuilder.treeKeys().arrayListValues().build();
    // Of two that need as much, the one that comes first here is the nearer to the given order.
    // Collectives beside compute need more than the peak of an order, and so not the best one says.
    Parallel.<Optional<int[]>>all(
            List.of(
                () -> Optional.of(PeakDescent.from(units, given, WORK)),
                () -> ExactOrder.of(units, mostSets),
                () -> Optional.of(improved(units, ListOrder.forward(units))),
                () -> Optional.of(improved(units, ListOrder.backward(units)))))
        .forEach(way -> way.ifPresent(order -> add(found, units, order, atFirst)));
    return List.copyOf(found.values());
  }

  private static int[] improved(WorkUnits units, int[] order) {
    return PeakDescent.from(units, order, WORK / 4);
  }

  private static void add(
      ListMultimap<Long, int[]> found, WorkUnits units, int[] order, MemoryProfile given) {
    long peak = MemoryProfile.of(units, order).peak();
    if (peak < given.peak() && found.get(peak).stream().noneMatch(o -> Arrays.equals(o, order))) {
      found.put(peak, order);
    }
  }
}
