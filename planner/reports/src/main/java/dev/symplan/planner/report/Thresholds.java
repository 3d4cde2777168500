package dev.symplan.planner.report;

import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;

/**
 * The size of the operand from which, or up to which, a variant would be faster than another by the
 * cost model, without copies and hidden time.
 */
final class Thresholds {
  private static final long MIN_BYTES = 16;
  private static final long MAX_BYTES = 64L << 30;

  private record Pair(Kind kind, Variant variant, Variant chosen, int ranks, long bytes) {}

  private final CostModel costs;
  private final Map<Pair, String> known = new HashMap<>();

  Thresholds(Target target) {
    this.costs = new CostModel(target);
  }

  /** {@return for example {@code faster up to 256.0 KiB}} */
  String text(Kind kind, Variant variant, Variant chosen, int ranks, long bytes) {
    return known.computeIfAbsent(new Pair(kind, variant, chosen, ranks, bytes), this::text);
  }

  private String text(Pair pair) {
    long here = Math.max(MIN_BYTES, pair.bytes());
    if (isFaster(pair, here)) {
      return "faster alone, but not with copies, overlap and epilogue";
    }
    var below = crossing(pair, here, false);
    if (below.isPresent()) {
      return "faster up to " + Units.bytes(below.getAsLong());
    }
    var above = crossing(pair, here, true);
    return above.isPresent() ? "faster from " + Units.bytes(above.getAsLong()) : "never faster";
  }

  private boolean isFaster(Pair pair, long bytes) {
    return costs.transferMicros(pair.kind(), pair.variant(), bytes, pair.ranks())
        < costs.transferMicros(pair.kind(), pair.chosen(), bytes, pair.ranks());
  }

  /** The size nearest to the given one at which it is faster, found by doubling and halving. */
  private OptionalLong crossing(Pair pair, long from, boolean up) {
    long slow = from;
    long fast = from;
    do {
      slow = fast;
      fast = up ? fast * 2 : fast / 2;
      if (fast < MIN_BYTES || fast > MAX_BYTES) {
        return OptionalLong.empty();
      }
    } while (!isFaster(pair, fast));
    while (Math.abs(fast - slow) > Math.max(1, fast / 256)) {
      long middle = (slow + fast) / 2;
      if (isFaster(pair, middle)) {
        fast = middle;
      } else {
        slow = middle;
      }
    }
    return OptionalLong.of(fast);
  }
}
