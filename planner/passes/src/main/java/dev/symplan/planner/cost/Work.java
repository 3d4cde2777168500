package dev.symplan.planner.cost;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The minimum work of a local step of a plan.
 *
 * @param bytes that it reads and writes at least, if it touches everything once: operands that it
 *     does not make itself, and results that have memory
 * @param flops {@link Op#flops} of all its ops
 * @param dtype of the factors that those multiply; empty if there are no such operations
 */
public record Work(long bytes, double flops, Optional<DType> dtype) {

  public Work {
    if (bytes < 0 || !(flops >= 0)) {
      throw new IllegalArgumentException("%s bytes and %s operations".formatted(bytes, flops));
    }
    if (flops > 0 && dtype.isEmpty()) {
      throw new IllegalArgumentException("operations of an unknown type");
    }
  }

  /**
   * {@return the work of a local step; an epilogue need not read what is reduced before it, unless
   * peers store that}
   */
  public static Work ofStep(RankPlan plan, int step) {
    var counting = new Counting(plan);
    int before = plan.epilogueOf(step);
    if (before >= 0 && !plan.collectives().get(before).spec().meetsBeforeEpilogue()) {
      plan.collectives()
          .get(before)
          .results()
          .forEach(id -> counting.have(plan.placements().get(id)));
    }
    return switch (plan.steps().get(step)) {
      case Step.Compute(int op) -> of(plan, ImmutableIntArray.of(op), counting);
      case Step.Fused(var ops) -> of(plan, ops, counting);
      case Step.Start _, Step.Join _ -> new Work(0, 0, Optional.empty());
    };
  }

  /**
   * {@return the work of some ops as one step}
   *
   * @param ops their indices in the graph, ascending
   */
  public static Work of(RankPlan plan, ImmutableIntArray ops) {
    return of(plan, ops, new Counting(plan));
  }

  private static Work of(RankPlan plan, ImmutableIntArray ops, Counting counting) {
    double flops = 0;
    var dtype = Optional.<DType>empty();
    for (int i = 0; i < ops.length(); i++) {
      var op = plan.graph().ops().get(ops.get(i));
      counting.add(op);
      if (op.flops() > 0) {
        flops += op.flops();
        dtype = dtype.or(() -> factors(op));
      }
    }
    return new Work(counting.bytes(), flops, dtype);
  }

  private static Optional<DType> factors(Op op) {
    return op.operands().stream()
        .filter(Value::isTensor)
        .map(value -> value.tensor().dtype())
        .findFirst();
  }

  /** Adds up memory; the same memory under several names is read once. */
  private static final class Counting {
    private final RankPlan plan;
    private final Map<Placement, Long> reads = new HashMap<>();
    private final Set<Value> made = new HashSet<>();
    private final Set<Placement> had = new HashSet<>();
    private long written;

    Counting(RankPlan plan) {
      this.plan = plan;
    }

    /** Takes in that what lies at a place need not be read. */
    void have(Placement placement) {
      had.add(placement);
    }

    void add(Op op) {
      var operands = tensors(op.operands());
      var results = tensors(op.results());
      if (op.def().has(OpTrait.UPDATES_SELF) && isInPlace(operands, results)) {
        // Each given tensor is read, and written to as many elements or more.
        var given = operands.subList(1, operands.size());
        given.forEach(value -> read(value, Long.MAX_VALUE));
        written +=
            Math.min(Work.bytes(results.getFirst()), given.stream().mapToLong(Work::bytes).sum());
      } else {
        long most =
            op.def().has(OpTrait.GATHER) && !results.isEmpty()
                ? results.getFirst().tensor().bytes()
                : Long.MAX_VALUE;
        for (int i = 0; i < operands.size(); i++) {
          read(operands.get(i), i == 0 ? most : Long.MAX_VALUE);
        }
        write(op);
      }
      made.addAll(op.results());
    }

    private static ImmutableList<Value> tensors(ImmutableList<Value> values) {
      return values.stream().filter(Value::isTensor).collect(ImmutableList.toImmutableList());
    }

    private boolean isInPlace(ImmutableList<Value> operands, ImmutableList<Value> results) {
      return !operands.isEmpty()
          && results.size() == 1
          && plan.placement(operands.getFirst()).equals(plan.placement(results.getFirst()));
    }

    private void read(Value value, long most) {
      var placement = plan.placement(value);
      if (placement.exists() && !made.contains(value) && !had.contains(placement)) {
        reads.merge(placement, Math.min(most, Work.bytes(value)), Math::max);
      }
    }

    private void write(Op op) {
      var inferred = op.infer();
      for (int i = 0; i < op.results().size(); i++) {
        var result = op.results().get(i);
        boolean own =
            i >= inferred.size()
                || (inferred.get(i).view().isEmpty() && !inferred.get(i).unspecified());
        if (own && result.isTensor() && plan.placement(result).exists()) {
          written += Work.bytes(result);
        }
      }
    }

    long bytes() {
      return written + reads.values().stream().mapToLong(bytes -> bytes).sum();
    }
  }

  /** Elements that have the same place are touched once, and gaps are not. */
  private static long bytes(Value value) {
    return Math.min(value.tensor().bytes(), value.tensor().storageBytes());
  }
}
