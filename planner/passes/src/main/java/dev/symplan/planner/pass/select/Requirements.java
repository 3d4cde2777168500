package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Eligibility;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * What must hold before a variant can carry out a collective: found out by asking {@link
 * Eligibility} about every reduction, element type and size, on a target that has everything, and
 * then on targets that lack one thing each. So it cannot differ from what the planner does.
 *
 * @param reductions those that it knows; empty where nothing is reduced
 * @param dtypes the element types that it knows, for sum where something is reduced
 * @param multicast whether the target must have NVLink multicast, and the caller switch it on
 * @param copyEngines whether the target must have copy engines that reach peers
 * @param peers whether all ranks must be on one host, where they reach each other's memory
 * @param several whether it takes several tensors in one launch, with the newest NCCL
 * @param mostBytes the largest operand of one rank, a power of two; empty where there is no limit
 * @param nccl the oldest NCCL that has it, as {@code major * 10000 + minor * 100 + patch}; empty
 *     where that does not matter
 * @param newer what needs a newer NCCL than that, by version
 */
public record Requirements(
    ImmutableList<ReduceOp> reductions,
    ImmutableList<DType> dtypes,
    boolean multicast,
    boolean copyEngines,
    boolean peers,
    boolean several,
    OptionalLong mostBytes,
    OptionalInt nccl,
    ImmutableSortedMap<Integer, ImmutableList<String>> newer) {

  private static final int RANKS = 4;
  private static final int NEWEST = 9_99_99;
  private static final int OLDEST = 2_00_00;

  /** An operand that no limit is below. */
  private static final long FEW_BYTES = 1024;

  /** Beyond this, no tensor can be. */
  private static final long MAX_BYTES = 1L << 47;

  /** Asks about one variant of one op. */
  private record Question(OpDef def, Kind kind, Variant variant) {

    boolean isAnswered(Target target, ReduceOp op, DType dtype, long bytes, int tensors) {
      long count = Math.max(1, bytes / dtype.bytes());
      var value = new Value(0, "x", TensorType.contiguous(dtype, count), Span.NONE, false);
      var none = Collections.<Arg>nCopies(def.schema().params().size(), Arg.None.NONE);
      var call = new Op(def, ImmutableList.copyOf(none), ImmutableList.of(), Span.NONE, Notes.NONE);
      var operands = ImmutableList.copyOf(Collections.nCopies(tensors, value));
      var collective =
          new Eligibility.Request(
              call, kind, kind.reduces() ? Optional.of(op) : Optional.empty(), operands);
      var group = ProcessGroup.world("g", variant == Variant.LOCAL ? 1 : RANKS);
      return new Eligibility(target, true).reject(collective, variant, group).isEmpty();
    }

    /** {@return whether there is an element type that it knows} */
    boolean isAnswered(Target target, ReduceOp op) {
      return Stream.of(DType.values()).anyMatch(dtype -> isAnswered(target, op, dtype));
    }

    boolean isAnswered(Target target, ReduceOp op, DType dtype) {
      return isAnswered(target, op, dtype, FEW_BYTES, 1);
    }
  }

  /** {@return what a variant that exists for a kind needs} */
  public static Requirements of(OpDef def, Kind kind, Variant variant) {
    var ask = new Question(def, kind, variant);
    var best = with(true, true, NEWEST, RANKS);
    var dtypes =
        Stream.of(DType.values())
            .filter(dtype -> ask.isAnswered(best, ReduceOp.SUM, dtype))
            .collect(ImmutableList.toImmutableList());
    var reductions =
        Stream.of(ReduceOp.values())
            .filter(op -> kind.reduces())
            .filter(op -> ask.isAnswered(best, op))
            .collect(ImmutableList.toImmutableList());
    boolean several =
        !dtypes.isEmpty() && ask.isAnswered(best, ReduceOp.SUM, dtypes.getFirst(), FEW_BYTES, 2);
    var oldest = oldest(target -> ask.isAnswered(target, ReduceOp.SUM));
    return new Requirements(
        reductions,
        dtypes,
        !ask.isAnswered(with(false, true, NEWEST, RANKS), ReduceOp.SUM),
        !ask.isAnswered(with(true, false, NEWEST, RANKS), ReduceOp.SUM),
        !ask.isAnswered(with(true, true, NEWEST, RANKS - 1), ReduceOp.SUM)
            && variant != Variant.LOCAL,
        several,
        mostBytes(ask, best, dtypes),
        oldest > OLDEST ? OptionalInt.of(oldest) : OptionalInt.empty(),
        newer(ask, reductions, dtypes, several, oldest));
  }

  /** NCCL's versions only add: the oldest that does is found by halving. */
  private static int oldest(Predicate<Target> condition) {
    if (!condition.test(with(true, true, NEWEST, RANKS))) {
      return NEWEST;
    }
    int low = OLDEST;
    int high = NEWEST;
    while (low < high) {
      int middle = (low + high) / 2;
      if (condition.test(with(true, true, middle, RANKS))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  private static OptionalLong mostBytes(Question ask, Target best, List<DType> dtypes) {
    if (dtypes.isEmpty()) {
      return OptionalLong.empty();
    }
    var dtype = dtypes.contains(DType.BF16) ? DType.BF16 : dtypes.getFirst();
    for (long bytes = FEW_BYTES; bytes < MAX_BYTES; bytes *= 2) {
      if (!ask.isAnswered(best, ReduceOp.SUM, dtype, bytes, 1)) {
        return OptionalLong.of(bytes / 2);
      }
    }
    return OptionalLong.empty();
  }

  private static ImmutableSortedMap<Integer, ImmutableList<String>> newer(
      Question ask,
      List<ReduceOp> reductions,
      List<DType> dtypes,
      boolean takesSeveral,
      int oldest) {
    var newer = new TreeMap<Integer, ImmutableList<String>>();
    for (var op : reductions) {
      note(newer, oldest, oldest(t -> ask.isAnswered(t, op)), op.text());
    }
    for (var dtype : dtypes) {
      note(newer, oldest, oldest(t -> ask.isAnswered(t, ReduceOp.SUM, dtype)), dtype.shortName());
    }
    if (!dtypes.isEmpty() && takesSeveral) {
      note(
          newer,
          oldest,
          oldest(t -> ask.isAnswered(t, ReduceOp.SUM, dtypes.getFirst(), FEW_BYTES, 2)),
          "several tensors in one");
    }
    return ImmutableSortedMap.copyOf(newer);
  }

  private static void note(
      TreeMap<Integer, ImmutableList<String>> newer, int oldest, int version, String what) {
    if (version > oldest && version < NEWEST) {
      var before = newer.getOrDefault(version, ImmutableList.of());
      newer.put(version, ImmutableList.<String>builder().addAll(before).add(what).build());
    }
  }

  private static Target with(boolean multicast, boolean copyEngines, int nccl, int gpus) {
    var base = Target.H200_X4;
    return new Target(
        base.name(),
        gpus,
        base.link(),
        base.memoryRate(),
        base.matrixRate(),
        base.launchMicros(),
        base.barrier(),
        base.copyEngineMicros(),
        base.smOverlap(),
        base.copyEngineOverlap(),
        base.workspaceBytes(),
        multicast,
        copyEngines,
        nccl,
        base.sources(),
        base.curves());
  }
}
