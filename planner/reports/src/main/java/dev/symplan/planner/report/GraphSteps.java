package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.RankPlan;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * The steps of one graph of a program, on the axis of all steps.
 *
 * @param first the border before it; for the first graph, the end of the setup, or 0
 * @param end the next border, or the number of steps
 */
record GraphSteps(String name, int first, int end) {

  /** {@return the graphs that a plan runs one after the other; one if it has no borders} */
  static ImmutableList<GraphSteps> of(RankIndex index) {
    var parts = index.plan().graphs();
    var graphs = ImmutableList.<GraphSteps>builder();
    for (int g = 0; g < parts.size(); g++) {
      graphs.add(
          new GraphSteps(
              parts.get(g).name(),
              parts.get(g).firstOp() == 0 ? 0 : index.stepOfOp(parts.get(g).firstOp() - 1),
              g + 1 == parts.size()
                  ? index.plan().steps().size()
                  : index.stepOfOp(parts.get(g).endOp())));
    }
    return graphs.build();
  }

  /** {@return its row in a summary} */
  Row row(RankPlan plan, PredictedTimes times) {
    var live = live(plan);
    long most = IntStream.range(first, end).mapToLong(step -> live[step]).max().orElse(0);
    long held = held(plan);
    double from = first < end ? times.begin().get(first) : 0;
    double micros =
        IntStream.range(first, end).mapToDouble(times.end()::get).max().orElse(from) - from;
    boolean last = end == plan.steps().size();
    return Row.titled("graph")
        .details(
            "%s: steps %s to %s · predicted %s · at most %s live%s"
                .formatted(
                    name,
                    first,
                    Math.max(first, end - 1),
                    Units.micros(micros),
                    Units.bytes(most),
                    last ? "" : " · " + Units.bytes(held) + " in use across its end"))
        .fact("name", name)
        .fact("first_step", first)
        .fact("end_step", end)
        .fact("predicted_us", micros)
        .fact("live_bytes", most)
        .fact("held_bytes", last ? 0 : held)
        .build();
  }

  /** {@return by step, the bytes in the arenas that are in use} */
  private static long[] live(RankPlan plan) {
    var change = new long[plan.steps().size() + 2];
    for (var buffer : plan.buffers()) {
      if (buffer.arena().isPlanned()) {
        change[Math.max(0, buffer.first())] += buffer.alignedBytes();
        change[buffer.last() + 1] -= buffer.alignedBytes();
      }
    }
    Arrays.parallelPrefix(change, Long::sum);
    return change;
  }

  /** The bytes in the arenas that are in use before the next border and after it. */
  private long held(RankPlan plan) {
    return plan.buffers().stream()
        .filter(buffer -> buffer.arena().isPlanned())
        .filter(buffer -> buffer.first() < end && buffer.last() > end)
        .mapToLong(buffer -> buffer.alignedBytes())
        .sum();
  }
}
