package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.plan.Epilogue;
import java.util.Optional;

/**
 * The ops that could run in the kernel of the collective before them: they run as one step right
 * after it, and go by rows of what it reduces.
 *
 * @param bytes that they read and write in memory, apart from what is reduced
 * @param reducedBytes the size of what is reduced
 * @param rows the number of its rows
 * @param stored whether other ops, or the caller, read what is reduced, too
 * @param micros the time that they take as a kernel of their own, in µs
 */
public record EpilogueOps(long bytes, long reducedBytes, long rows, boolean stored, double micros) {

  /** {@return whether a collective is of the kind that can have an epilogue} */
  public static boolean mayFollow(Collective collective) {
    return VariantSpec.mayTakeEpilogues(collective.kind()) && collective.operands().size() == 1;
  }

  /** {@return for each collective, the ops behind it that could run in its kernel} */
  static ImmutableList<Optional<EpilogueOps>> allOf(Analyses analyses) {
    var overlap = analyses.overlap();
    return Parallel.map(analyses.collectives().size(), k -> of(analyses, overlap, k));
  }

  private static Optional<EpilogueOps> of(Analyses analyses, OverlapWindows overlap, int k) {
    var collective = analyses.collectives().get(k);
    if (!mayFollow(collective) || converts(collective)) {
      return Optional.empty();
    }
    var window = overlap.window(k);
    int position = window.given() + 1;
    var units = overlap.units();
    if (window.needed() != position
        || position >= units.size()
        || !analyses.aliases().families().isAlone(reduced(analyses, collective))
        || !goByRows(analyses, collective, units.get(position))) {
      return Optional.empty();
    }
    var unit = units.get(position);
    int storage = reduced(analyses, collective);
    return Optional.of(
        new EpilogueOps(
            analyses.fusion().bytesInMemory(unit, storage),
            collective.results().getFirst().tensor().bytes(),
            rows(analyses, collective, unit),
            analyses.uses().lastOpOrCaller(storage) > unit.get(unit.length() - 1),
            overlap.computeBetween(position, position + 1)));
  }

  /**
   * {@return whether they can run in the kernel of a variant}
   *
   * @param ranks of the collective's group
   */
  public boolean fit(VariantSpec spec, long ranks) {
    return spec.takesEpilogues() && (!spec.slicesBeforeEpilogue() || rows % ranks == 0);
  }

  /** {@return whether the kernel of a variant must store what it reduces} */
  public boolean stored(VariantSpec spec) {
    return stored || spec.meetsBeforeEpilogue();
  }

  /** {@return how much less they take in the kernel of the collective, in µs} */
  public double savedMicros(CostModel costs, VariantSpec spec) {
    return Math.max(0, micros - addedMicros(costs, spec));
  }

  /** {@return the time that they add to the collective's kernel, in µs} */
  public double addedMicros(CostModel costs, VariantSpec spec) {
    return costs.streamedMicros(bytes + (spec.meetsBeforeEpilogue() ? reducedBytes : 0));
  }

  /** The fewest that an op goes by which reads what is reduced. */
  private static long rows(Analyses analyses, Collective collective, ImmutableIntArray unit) {
    var ops = ops(analyses, unit);
    int storage = reduced(analyses, collective);
    int shared = Rows.shared(ops);
    return ops.stream()
        .flatMap(op -> op.operands().stream())
        .filter(value -> analyses.aliases().id(value) == storage)
        .mapToLong(value -> Epilogue.rows(value.tensor(), shared))
        .min()
        .orElseThrow();
  }

  /** Whether it gives elements of another type than it reads, which the kernel does not. */
  private static boolean converts(Collective collective) {
    return collective.operands().getFirst().tensor().dtype()
        != collective.results().getFirst().tensor().dtype();
  }

  private static int reduced(Analyses analyses, Collective collective) {
    return analyses.aliases().id(collective.results().getFirst());
  }

  private static boolean goByRows(
      Analyses analyses, Collective collective, ImmutableIntArray unit) {
    var ops = ops(analyses, unit);
    if (!ops.stream().allMatch(EpilogueOps::isByRow)) {
      return false;
    }
    int storage = reduced(analyses, collective);
    int shared = Rows.shared(ops);
    boolean reads = false;
    for (var op : ops) {
      for (var value : op.operands()) {
        if (analyses.aliases().id(value) == storage) {
          reads = true;
          if (!readsRows(op, value, collective.results().getFirst().tensor(), shared)) {
            return false;
          }
        }
      }
    }
    return reads;
  }

  private static boolean isByRow(Op op) {
    boolean elementwise =
        op.def().has(OpTrait.ELEMENTWISE)
            && op.results().size() == 1
            && op.operands().stream()
                .allMatch(
                    value ->
                        !value.isTensor() || value.tensor().broadcastsTo(op.result().tensor()));
    return (elementwise || op.def().has(OpTrait.ROWWISE))
        && !op.def().has(OpTrait.CONCATENATION)
        && !op.def().schema().mutates()
        && !op.isComplex()
        && !op.results().isEmpty()
        && op.results().stream().allMatch(made -> made.isTensor() && made.tensor().numel() > 0);
  }

  /** Whether an op that reads all of what is reduced needs one of its rows for each of its own. */
  private static boolean readsRows(Op op, Value value, TensorType reduced, int shared) {
    var type = value.tensor();
    // Ops that go element by element go by rows, too.
    int rows = Math.min(shared, type.rank() - 1);
    return rows > 0
        && Rows.carries(op, value, rows)
        && type.dtype() == reduced.dtype()
        && type.numel() == reduced.numel()
        && reduced.isContiguous()
        && op.results().stream().allMatch(made -> made.tensor().numel() <= type.numel())
        && Epilogue.holds(type, rows);
  }

  private static ImmutableList<Op> ops(Analyses analyses, ImmutableIntArray unit) {
    return unit.stream()
        .mapToObj(analyses.graph().ops()::get)
        .collect(ImmutableList.toImmutableList());
  }
}
