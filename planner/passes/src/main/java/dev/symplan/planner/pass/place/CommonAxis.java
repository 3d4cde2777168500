package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.plan.Step;
import java.util.List;

/**
 * One rank's steps on an axis that all ranks share.
 *
 * <p>The starts of the collectives are the same on all ranks and fix the axis; between two of them
 * each rank counts its own steps, and the axis is as long there as the longest rank needs.
 *
 * @param positions by step + 1, so that -1, before the program, has a position; the last is after
 *     it
 */
public record CommonAxis(ImmutableIntArray positions) {

  /** {@return each rank's axis} */
  public static ImmutableList<CommonAxis> of(List<? extends List<Step>> ranks) {
    int segments = 1 + (int) ranks.getFirst().stream().filter(Step.Start.class::isInstance).count();
    var lengths = new int[segments];
    for (var steps : ranks) {
      int segment = 0;
      int length = 0;
      for (var step : steps) {
        if (step instanceof Step.Start) {
          lengths[segment] = Math.max(lengths[segment], length);
          segment++;
          length = 0;
        }
        length++;
      }
      lengths[segment] = Math.max(lengths[segment], length);
    }
    var bases = new int[segments + 1];
    for (int i = 0; i < segments; i++) {
      bases[i + 1] = bases[i] + lengths[i];
    }
    return ranks.stream().map(steps -> axis(steps, bases)).collect(ImmutableList.toImmutableList());
  }

  private static CommonAxis axis(List<Step> steps, int[] bases) {
    var positions = ImmutableIntArray.builder(steps.size() + 2).add(0);
    int segment = 0;
    int inSegment = 0;
    for (var step : steps) {
      if (step instanceof Step.Start) {
        segment++;
        inSegment = 0;
      }
      positions.add(1 + bases[segment] + inSegment++);
    }
    return new CommonAxis(positions.add(1 + bases[bases.length - 1]).build());
  }

  /** {@return the position of a step, -1 and the number of steps included} */
  public int of(int step) {
    return positions.get(step + 1);
  }
}
