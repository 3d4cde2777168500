package dev.symplan.planner.machine;

import static dev.symplan.planner.machine.Protocol.Slice.MINE;
import static dev.symplan.planner.machine.Protocol.Slice.THEIRS;
import static dev.symplan.planner.machine.Protocol.Slice.WHOLE;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Requirement.AlignedSlices;
import dev.symplan.planner.machine.Requirement.CopyEngines;
import dev.symplan.planner.machine.Requirement.EqualRows;
import dev.symplan.planner.machine.Requirement.LessThan;
import dev.symplan.planner.machine.Requirement.Multicast;
import dev.symplan.planner.machine.Requirement.Nccl;
import dev.symplan.planner.machine.Requirement.OneTensor;
import dev.symplan.planner.machine.Requirement.OneType;
import dev.symplan.planner.machine.Requirement.Reductions;
import dev.symplan.planner.machine.Requirement.Runs;
import dev.symplan.planner.machine.Requirement.SeveralTensors;
import dev.symplan.planner.machine.Requirement.Types;
import dev.symplan.planner.machine.Requirement.WorkspaceFits;
import java.util.List;

/**
 * The variants of each kind of collective, a row for each.
 *
 * <p>NCCL's limits are those of its symmetric kernels up to 2.30 and of {@code ncclRedOp_t}; those
 * of the own kernels are what the kernels are written for. NCCL falls back to other kernels without
 * a word where its symmetric ones do not apply, so the rows say beforehand what these take. Windows
 * begin at multiples of 4096 bytes and have the same size and the same offsets on all ranks,
 * because the whole symmetric arena is one.
 */
final class VariantTable {
  private static final ImmutableSet<DType> SHORT_FLOATS =
      ImmutableSet.of(DType.F32, DType.F16, DType.BF16);
  private static final ImmutableSet<DType> FP8 = ImmutableSet.of(DType.F8E4M3FN, DType.F8E5M2);
  private static final ImmutableSet<DType> NCCL_TYPES =
      ImmutableSet.of(
          DType.F64,
          DType.F32,
          DType.F16,
          DType.BF16,
          DType.F8E4M3FN,
          DType.F8E5M2,
          DType.I64,
          DType.I32,
          DType.I8,
          DType.U64,
          DType.U32,
          DType.U8,
          DType.BOOL);

  private static final Requirement KERNEL_TYPES = new Types(SHORT_FLOATS, "no kernel reduces %s");

  private static final ImmutableList<Requirement> TWO_SHOT_REDUCES =
      ImmutableList.of(
          new Reductions(
              ImmutableSet.of(ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MIN, ReduceOp.MAX),
              "two-shot kernels support sum, avg, min and max, not %s"),
          KERNEL_TYPES);

  private static final ImmutableList<Requirement> SWITCH_REDUCES =
      ImmutableList.of(
          new Multicast(),
          new Reductions(ImmutableSet.of(ReduceOp.SUM), "the switch supports sum only, not %s"),
          KERNEL_TYPES);

  private static final ImmutableList<Requirement> SYMMETRIC =
      ImmutableList.of(
          nccl(22700, "a symmetric kernel"), new LessThan(64), new SeveralTensors(22800, 23007));

  private static final ImmutableList<Requirement> SYMMETRIC_REDUCES =
      ImmutableList.of(
          nccl(22700, "a symmetric kernel"),
          new Nccl(
              23000, "avg in symmetric kernels", ImmutableSet.of(ReduceOp.AVG), ImmutableSet.of()),
          new Reductions(
              ImmutableSet.of(ReduceOp.SUM, ReduceOp.AVG),
              "NCCL's symmetric kernels do not support %s"),
          new Types(
              ImmutableSet.<DType>builder().addAll(SHORT_FLOATS).addAll(FP8).build(),
              "NCCL's symmetric kernels add floats of at most 32 bits, not %s"),
          new LessThan(64),
          new SeveralTensors(22800, 23007));

  /** Seen with NCCL 2.28.9 on two H200s: other slices are added up wrongly, without an error. */
  private static final ImmutableList<Requirement> SYMMETRIC_SCATTERS =
      ImmutableList.<Requirement>builder()
          .addAll(SYMMETRIC_REDUCES)
          .add(new AlignedSlices())
          .build();

  private static final ImmutableList<Requirement> NCCL_COPIES =
      ImmutableList.of(new CopyEngines(), nccl(22800, "a copy engine collective"), new OneTensor());

  private static final ImmutableList<Requirement> NCCL_EXCHANGES =
      ImmutableList.<Requirement>builder().addAll(NCCL_COPIES).add(new EqualRows()).build();

  private static final ImmutableList<Requirement> NCCL_REDUCES =
      ImmutableList.of(
          new Reductions(
              ImmutableSet.of(
                  ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX),
              "NCCL does not support %s"),
          new Nccl(22400, "%s in reductions", ImmutableSet.of(), FP8),
          new Types(NCCL_TYPES, "NCCL does not reduce %s"));

  private static final ImmutableList<Requirement> WORKSPACE = ImmutableList.of(new WorkspaceFits());
  private static final ImmutableList<Requirement> MULTICAST = ImmutableList.of(new Multicast());
  private static final ImmutableList<Requirement> COPY_ENGINES =
      ImmutableList.of(new CopyEngines());
  private static final ImmutableList<Requirement> NOTHING = ImmutableList.of();

  /** Whether operand and result may share memory. */
  private static final boolean SHARED = true;

  private static final boolean APART = false;

  /** By kind, and for each kind in the order of the variants. */
  static final ImmutableTable<Kind, Variant, VariantSpec> ROWS =
      new Rows()
          .of(Kind.ALL_REDUCE)
          .row(Variant.LOCAL, Protocol.LOCAL, Wire.NOTHING, SHARED, NOTHING, Numerics.ONE_RANK)
          .row(Variant.ONE_SHOT, Protocol.pull(WHOLE, WHOLE), Wire.TO_PEERS, APART, NOTHING)
          .row(Variant.ONE_SHOT_PUSH, Protocol.rounds(WHOLE), Wire.TO_PEERS, SHARED, WORKSPACE)
          .row(Variant.TWO_SHOT, Protocol.SLICES, Wire.SLICES_TWICE, SHARED, TWO_SHOT_REDUCES)
          // To the rank that reduces a slice, and from there to all.
          .row(
              Variant.TWO_SHOT_PUSH,
              Protocol.rounds(THEIRS, MINE),
              Wire.SLICES_TWICE,
              SHARED,
              WORKSPACE)
          .row(
              Variant.MULTIMEM,
              Protocol.SLICES,
              Wire.SWITCH_REDUCES,
              SHARED,
              SWITCH_REDUCES,
              Numerics.SWITCH_ORDER)
          .row(
              Variant.MULTIMEM_ONE_SHOT,
              Protocol.pull(WHOLE, WHOLE),
              Wire.SWITCH_REDUCES_FOR_EACH,
              APART,
              SWITCH_REDUCES,
              Numerics.SWITCH_ORDER_OF_EACH)
          .row(
              Variant.NCCL_SYMM,
              Protocol.SLICES,
              Wire.SLICES_TWICE,
              SHARED,
              SYMMETRIC_REDUCES,
              Numerics.NCCL)
          .row(Variant.NCCL, Protocol.LOCAL, Wire.SLICES_TWICE, SHARED, NCCL_REDUCES, Numerics.NCCL)
          .of(Kind.ALL_GATHER)
          .row(Variant.LOCAL, Protocol.LOCAL, Wire.NOTHING, APART, NOTHING)
          .row(Variant.ONE_SHOT, Protocol.pull(WHOLE, THEIRS), Wire.TO_PEERS, APART, NOTHING)
          .row(Variant.PUSH, Protocol.push(WHOLE, MINE), Wire.TO_PEERS, SHARED, NOTHING)
          .row(
              Variant.MULTIMEM,
              Protocol.push(WHOLE, MINE),
              Wire.SWITCH_GATHERS,
              APART,
              runs(MULTICAST))
          .row(Variant.COPY_ENGINE, Protocol.push(WHOLE, MINE), Wire.TO_PEERS, SHARED, COPY_ENGINES)
          .row(Variant.NCCL_SYMM, Protocol.push(WHOLE, MINE), Wire.TO_PEERS, APART, runs(SYMMETRIC))
          .row(Variant.NCCL_CE, Protocol.push(WHOLE, MINE), Wire.TO_PEERS, APART, runs(NCCL_COPIES))
          .row(Variant.NCCL, Protocol.LOCAL, Wire.TO_PEERS, SHARED, runs(NOTHING))
          .of(Kind.REDUCE_SCATTER)
          .row(
              Variant.LOCAL,
              Protocol.LOCAL,
              Wire.NOTHING,
              APART,
              oneType(NOTHING),
              Numerics.ONE_RANK)
          .row(Variant.ONE_SHOT, Protocol.pull(MINE, WHOLE), Wire.SLICES, SHARED, NOTHING)
          .row(
              Variant.MULTIMEM,
              Protocol.pull(MINE, WHOLE),
              Wire.SWITCH_SCATTERS,
              APART,
              oneType(runs(SWITCH_REDUCES)),
              Numerics.SWITCH_ORDER)
          .row(
              Variant.NCCL_SYMM,
              Protocol.pull(MINE, WHOLE),
              Wire.SLICES,
              APART,
              oneType(runs(SYMMETRIC_SCATTERS)),
              Numerics.NCCL)
          .row(
              Variant.NCCL,
              Protocol.LOCAL,
              Wire.SLICES,
              SHARED,
              oneType(runs(NCCL_REDUCES)),
              Numerics.NCCL)
          .of(Kind.ALL_TO_ALL)
          .row(Variant.LOCAL, Protocol.LOCAL, Wire.NOTHING, APART, NOTHING)
          .row(Variant.ONE_SHOT, Protocol.pull(MINE, THEIRS), Wire.SLICES, APART, NOTHING)
          .row(Variant.PUSH, Protocol.push(THEIRS, MINE), Wire.SLICES, APART, NOTHING)
          .row(Variant.COPY_ENGINE, Protocol.push(THEIRS, MINE), Wire.SLICES, APART, COPY_ENGINES)
          .row(
              Variant.NCCL_CE,
              Protocol.push(THEIRS, MINE),
              Wire.SLICES,
              APART,
              runs(NCCL_EXCHANGES))
          .row(Variant.NCCL, Protocol.LOCAL, Wire.SLICES, APART, runs(NOTHING))
          .of(Kind.BROADCAST)
          // The root's link carries every copy, unless the switch, a ring or the peers do.
          .row(Variant.LOCAL, Protocol.LOCAL, Wire.NOTHING, APART, NOTHING)
          .row(Variant.ONE_SHOT, Protocol.ROOT_PULL, Wire.FROM_ROOT, APART, NOTHING)
          .row(Variant.TWO_SHOT, Protocol.ROOT_RELAY, Wire.ONCE, APART, NOTHING)
          .row(Variant.MULTIMEM, Protocol.ROOT_PUSH, Wire.ONCE, APART, MULTICAST)
          .row(Variant.COPY_ENGINE, Protocol.ROOT_PUSH, Wire.FROM_ROOT, APART, COPY_ENGINES)
          .row(Variant.NCCL, Protocol.LOCAL, Wire.ONCE, APART, NOTHING)
          .of(Kind.COLLECTIVE_PERMUTE)
          .row(Variant.LOCAL, Protocol.LOCAL, Wire.NOTHING, APART, NOTHING)
          .row(Variant.ONE_SHOT, Protocol.SOURCE_PULL, Wire.ONCE, APART, NOTHING)
          .row(Variant.PUSH, Protocol.TARGET_PUSH, Wire.ONCE, APART, NOTHING)
          .row(Variant.COPY_ENGINE, Protocol.TARGET_PUSH, Wire.ONCE, APART, COPY_ENGINES)
          .row(Variant.NCCL, Protocol.LOCAL, Wire.ONCE, APART, NOTHING)
          .of(Kind.CUSTOM)
          .row(Variant.CUSTOM, Protocol.ANY, Wire.ONCE, APART, NOTHING, Numerics.CUSTOM)
          .table
          .buildOrThrow();

  private VariantTable() {}

  /** The same for variants that move only contiguous slices. */
  private static ImmutableList<Requirement> runs(List<Requirement> needs) {
    return ImmutableList.<Requirement>builder().addAll(needs).add(new Runs()).build();
  }

  /** The same for variants that do not convert elements. */
  private static ImmutableList<Requirement> oneType(List<Requirement> needs) {
    return ImmutableList.<Requirement>builder().addAll(needs).add(new OneType()).build();
  }

  private static Requirement nccl(int version, String what) {
    return new Nccl(version, what, ImmutableSet.of(), ImmutableSet.of());
  }

  /** The table in the making. */
  private static final class Rows {
    private final ImmutableTable.Builder<Kind, Variant, VariantSpec> table =
        ImmutableTable.builder();
    private Kind kind = Kind.CUSTOM;

    Rows of(Kind next) {
      kind = next;
      return this;
    }

    /** Adds in rank order, if it adds. */
    Rows row(
        Variant variant, Protocol protocol, Wire wire, boolean shares, List<Requirement> needs) {
      var numerics = kind.reduces() ? Numerics.RANK_ORDER : Numerics.COPY;
      return row(variant, protocol, wire, shares, needs, numerics);
    }

    Rows row(
        Variant variant,
        Protocol protocol,
        Wire wire,
        boolean shares,
        List<Requirement> needs,
        Numerics numerics) {
      table.put(
          kind,
          variant,
          new VariantSpec(
              kind, variant, protocol, wire, numerics, shares, ImmutableList.copyOf(needs)));
      return this;
    }
  }
}
