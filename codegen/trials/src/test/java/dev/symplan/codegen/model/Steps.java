package dev.symplan.codegen.model;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfers;
import dev.symplan.codegen.model.Sequence.Layout;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;
import java.util.stream.IntStream;

/** Each rank's work in a collective of one small tensor; the first rank is the root. */
final class Steps {
  private Steps() {}

  /** {@return the bytes of the larger of operand and result: slices of it are whole vectors} */
  static long bytes(int ranks) {
    return (long) Alignment.VECTOR * ranks * (ranks - 1);
  }

  /**
   * {@return the transfers of each rank}
   *
   * @param start whether the ranks meet before
   * @param end whether they meet after
   */
  static ImmutableList<ImmutableList<Transfer>> of(
      VariantSpec spec, int ranks, boolean start, boolean end, Layout layout) {
    var programs =
        IntStream.range(0, ranks)
            .mapToObj(rank -> program(rank, collective(spec, ranks, rank, start, end, layout)))
            .collect(ImmutableList.toImmutableList());
    var transfers = new Transfers(new Executable("model", 0, "", programs));
    return IntStream.range(0, ranks)
        .mapToObj(rank -> transfers.of(transfers.ofRank(rank).iterator().next(), 0))
        .collect(ImmutableList.toImmutableList());
  }

  private static Instruction.Collective collective(
      VariantSpec spec, int ranks, int self, boolean start, boolean end, Layout layout) {
    var kind = spec.kind();
    long whole = bytes(ranks);
    long operand = whole / (kind == Kind.ALL_GATHER ? ranks : 1);
    long result = whole / (kind == Kind.REDUCE_SCATTER ? ranks : 1);
    boolean gathers = kind == Kind.ALL_GATHER;
    return new Instruction.Collective(
        StreamKind.COMPUTE,
        kind,
        spec.variant(),
        new GroupUse(0, ImmutableIntArray.copyOf(IntStream.range(0, ranks)), self),
        kind.reduces() ? Optional.of(ReduceOp.SUM) : Optional.empty(),
        kind == Kind.BROADCAST ? 0 : -1,
        kind == Kind.COLLECTIVE_PERMUTE ? chain(ranks) : Permutation.NONE,
        ImmutableLongArray.of(),
        ImmutableLongArray.of(),
        layout == Layout.ROWS ? new SliceDims(gathers ? 0 : 1, gathers ? 1 : 0) : SliceDims.FIRST,
        ImmutableList.of(
            switch (layout) {
              case RUNS -> tensor(operand);
              case ROWS -> tensor(2, operand);
              case APART -> apart(gathers ? 2 : ranks, operand);
            }),
        ImmutableList.of(layout == Layout.ROWS ? tensor(2, result) : tensor(result)),
        start,
        end,
        Optional.empty(),
        Instruction.Epilogue.NONE,
        "c",
        Span.NONE);
  }

  /** Each rank sends to the next; nobody sends to the first, and the last sends to nobody. */
  private static Permutation chain(int ranks) {
    return new Permutation(
        IntStream.range(1, ranks)
            .mapToObj(target -> new Permutation.Pair(target - 1, target))
            .collect(ImmutableList.toImmutableList()));
  }

  private static TensorRef tensor(long... sizes) {
    return new TensorRef(ArenaKind.SYMMETRIC, 0, 0, TensorType.contiguous(DType.U8, sizes));
  }

  /** Rows of so many bytes together, with as many bytes between them. */
  private static TensorRef apart(int rows, long bytes) {
    long row = bytes / rows;
    var type = TensorType.contiguous(DType.U8, rows, row);
    return new TensorRef(
        ArenaKind.SYMMETRIC, 0, 0, type.withStrides(ImmutableLongArray.of(2 * row, 1)));
  }

  private static RankProgram program(int rank, Instruction instruction) {
    return new RankProgram(
        rank,
        0,
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.of(instruction),
        0);
  }
}
