package dev.symplan.planner.pass.rewrite;

import com.google.common.primitives.ImmutableDoubleArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Value;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.rewrite.RowShares.Shared;
import java.util.HashSet;
import java.util.OptionalInt;

/**
 * The costs of the ops of one graph that can run on shares of the rows.
 *
 * @param micros by all_reduce, the time of the ops behind it on all rows, in µs
 * @param cutBytes by all_reduce, the bytes of the shares that are cut from whole tensors
 */
record RowShareCosts(ImmutableDoubleArray micros, ImmutableLongArray cutBytes) {

  static RowShareCosts of(Analyses own, RowShares rows, PassContext context) {
    return new RowShareCosts(micros(own, rows), cutBytes(own, rows, context));
  }

  private static ImmutableDoubleArray micros(Analyses own, RowShares rows) {
    var micros = new double[own.collectives().size()];
    var overlap = own.overlap();
    for (int p = 0; p < overlap.units().size(); p++) {
      var unit = overlap.units().get(p);
      if (unit.stream().allMatch(i -> rows.shared(i).isPresent())) {
        int reduced = unit.stream().map(i -> reduced(rows, i).orElseThrow()).max().orElseThrow();
        micros[reduced] += overlap.computeBetween(p, p + 1);
      }
    }
    return ImmutableDoubleArray.copyOf(micros);
  }

  private static OptionalInt reduced(RowShares rows, int op) {
    return rows.shared(op).stream()
        .mapToInt(shared -> shared.results().getFirst().reduced())
        .findFirst();
  }

  private static ImmutableLongArray cutBytes(Analyses own, RowShares rows, PassContext context) {
    var bytes = new long[own.collectives().size()];
    var seen = new HashSet<Value>();
    for (int i = 0; i < own.graph().ops().size(); i++) {
      if (rows.shared(i).orElse(null) instanceof Shared shared) {
        var made = shared.results().getFirst();
        int ranks = context.groupSize(made.group());
        for (var value : shared.cut().keySet()) {
          if (seen.add(value)) {
            bytes[made.reduced()] += value.tensor().bytes() / ranks;
          }
        }
      }
    }
    return ImmutableLongArray.copyOf(bytes);
  }
}
