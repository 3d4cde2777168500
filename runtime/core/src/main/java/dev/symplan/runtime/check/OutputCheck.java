package dev.symplan.runtime.check;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Rounding;
import dev.symplan.runtime.tensor.TensorDiff;
import java.util.List;
import java.util.Optional;

/**
 * The comparison of a run's output with the expected one.
 *
 * @param index of the output
 * @param roundedTo the shortest float type that it passed through, which determines the tolerance
 */
public record OutputCheck(int index, TensorType type, TensorDiff difference, DType roundedTo) {

  /**
   * {@return the outputs of a rank of this process, but for those that an op may leave as they are}
   *
   * @param expected for each output; empty if there is nothing to compare with
   */
  public static ImmutableList<OutputCheck> of(
      Plan plan, Session session, int rank, List<Optional<HostTensor>> expected) {
    var graph = plan.forRank(rank).graph();
    var rounding = Rounding.of(graph);
    var checks = ImmutableList.<OutputCheck>builder();
    for (int i = 0; i < session.outputCount(rank); i++) {
      if (expected.get(i).isPresent() && graph.unspecifiedBy(i).isEmpty()) {
        var actual = session.output(rank, i).orElseThrow();
        checks.add(
            new OutputCheck(
                i,
                actual.type(),
                TensorDiff.between(actual, expected.get(i).get()),
                rounding.ofOutput(graph.outputs().get(i))));
      }
    }
    return checks.build();
  }

  /** {@return whether rounding explains the difference} */
  public boolean agrees() {
    return difference.isWithin(roundedTo);
  }
}
