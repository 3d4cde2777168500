package dev.symplan.planner.cost;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.StreamKind;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The predicted time of a schedule, as its steps are issued: compute runs step by step; a side
 * stream runs one collective at a time, and compute waits for the time that it did not hide at the
 * join.
 */
public final class Timeline {
  /** A collective that ran for so many times its predicted time will be done. */
  private static final double CERTAINTY = 2;

  /** When a copy between device and host memory begins and ends, in µs. */
  public record Copy(double begin, double end) {}

  private final CostModel costs;
  private final Map<Value, Copy> copies = new HashMap<>();
  private final EnumMap<StreamKind, Double> free = new EnumMap<>(StreamKind.class);
  private final double[] begin;
  private final double[] transfer;
  private double now;

  /**
   * @param transfer the time of each collective by itself, in µs
   */
  public Timeline(CostModel costs, double[] transfer) {
    this.costs = costs;
    this.transfer = transfer;
    this.begin = new double[transfer.length];
  }

  /**
   * Takes in a local op of so many µs. A copy between device and host memory begins on its stream,
   * and compute waits where the graph does.
   */
  public void local(Op op, double micros) {
    if (op.def().has(OpTrait.HOST_COPY)) {
      double from = Math.max(now, free.getOrDefault(StreamKind.COPY, 0.0));
      double to = from + costs.hostCopyMicros(op.result().tensor());
      copies.put(op.result(), new Copy(from, to));
      free.put(StreamKind.COPY, to);
    } else if (op.def().has(OpTrait.HOST_COPY_END)) {
      var copy = copies.getOrDefault(op.operands().getLast(), new Copy(now, now));
      double beside = Math.max(0, now - copy.begin());
      now =
          Math.max(now, copy.begin())
              + costs.exposedMicros(Variant.COPY_ENGINE, copy.end() - copy.begin(), beside)
              + costs.forkJoinMicros();
    } else if (op.def().has(OpTrait.SETUP_END)) {
      // A run begins here.
      now = 0;
    } else {
      compute(micros);
    }
  }

  /** {@return when a copy that was taken in begins and ends, by its result} */
  public Optional<Copy> copy(Value result) {
    return Optional.ofNullable(copies.get(result));
  }

  /** Takes in local work of so many µs. */
  public void compute(double micros) {
    now += micros;
  }

  /**
   * Takes in a collective; one on the compute stream is done here.
   *
   * @param maker µs of the step before it that run at the same time, since both are one kernel
   */
  public void start(int collective, StreamKind stream, double maker) {
    if (stream == StreamKind.COMPUTE) {
      now += costs.behindMicros(transfer[collective], maker);
      return;
    }
    begin[collective] = Math.max(now, free.getOrDefault(stream, 0.0));
    free.put(stream, begin[collective] + transfer[collective]);
  }

  /** {@return whether the collective has had time enough to be done, even if prediction erred} */
  public boolean isLongDone(int collective) {
    return now - begin[collective] >= CERTAINTY * transfer[collective];
  }

  /** Lets compute wait for a collective on a side stream. */
  public void join(int collective, Variant variant) {
    double beside = Math.max(0, now - begin[collective]);
    now =
        Math.max(now, begin[collective])
            + costs.exposedMicros(variant, transfer[collective], beside)
            + costs.forkJoinMicros();
  }

  /** {@return when a collective on a side stream that was started begins, in µs} */
  public double begin(int collective) {
    return begin[collective];
  }

  /** {@return the time of all that was issued, in µs} */
  public double micros() {
    return now;
  }
}
