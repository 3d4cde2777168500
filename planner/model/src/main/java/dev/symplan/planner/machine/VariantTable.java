package dev.symplan.planner.machine;

import static dev.symplan.planner.machine.Protocol.Part.MINE;
import static dev.symplan.planner.machine.Protocol.Part.THEIRS;
import static dev.symplan.planner.machine.Protocol.Part.WHOLE;
import static dev.symplan.planner.machine.Wire.FOR_EACH_PEER;
import static dev.symplan.planner.machine.Wire.NOTHING;
import static dev.symplan.planner.machine.Wire.ONCE;
import static dev.symplan.planner.machine.Wire.ONCE_AND_SLICE;
import static dev.symplan.planner.machine.Wire.SLICE;
import static dev.symplan.planner.machine.Wire.SLICE_FOR_EACH_PEER;
import static dev.symplan.planner.machine.Wire.TWO_SLICES_FOR_EACH_PEER;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Requirement.CopyEngines;
import dev.symplan.planner.machine.Requirement.EqualRows;
import dev.symplan.planner.machine.Requirement.LessThan;
import dev.symplan.planner.machine.Requirement.Multicast;
import dev.symplan.planner.machine.Requirement.Nccl;
import dev.symplan.planner.machine.Requirement.OneTensor;
import dev.symplan.planner.machine.Requirement.Reductions;
import dev.symplan.planner.machine.Requirement.SeveralInGroup;
import dev.symplan.planner.machine.Requirement.Types;
import dev.symplan.planner.machine.Requirement.WorkspaceFits;
import java.util.function.Function;
import java.util.stream.Stream;

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
          nccl(22700, "a symmetric kernel"), new LessThan(64), new SeveralInGroup(22800, 23007));

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
          new SeveralInGroup(22800, 23007));

  private static final ImmutableList<Requirement> NCCL_COPIES =
      ImmutableList.of(new CopyEngines(), nccl(22800, "a copy engine collective"), new OneTensor());

  private static final ImmutableList<Requirement> NCCL_REDUCES =
      ImmutableList.of(
          new Reductions(
              ImmutableSet.of(
                  ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX),
              "NCCL does not support %s"),
          new Nccl(22400, "%s in reductions", ImmutableSet.of(), FP8),
          new Types(NCCL_TYPES, "NCCL does not reduce %s"));

  static final ImmutableTable<Kind, Variant, VariantSpec> ROWS =
      Stream.of(allReduce(), allGather(), reduceScatter(), allToAll(), broadcast(), custom())
          .flatMap(rows -> rows)
          .map(Row::spec)
          .collect(
              ImmutableTable.toImmutableTable(
                  VariantSpec::kind, VariantSpec::variant, Function.identity()));

  private VariantTable() {}

  private static Requirement nccl(int version, String what) {
    return new Nccl(version, what, ImmutableSet.of(), ImmutableSet.of());
  }

  private static Stream<Row> allReduce() {
    var rows = new Rows(Kind.ALL_REDUCE);
    return Stream.of(
        rows.of(Variant.LOCAL, Protocol.LOCAL, NOTHING).adds(Numerics.ONE_RANK).sharing(),
        rows.of(Variant.ONE_SHOT, Protocol.pull(WHOLE, WHOLE), FOR_EACH_PEER),
        rows.of(Variant.ONE_SHOT_PUSH, Protocol.rounds(WHOLE), FOR_EACH_PEER)
            .sharing()
            .needs(new WorkspaceFits()),
        rows.of(Variant.TWO_SHOT, Protocol.SLICES, TWO_SLICES_FOR_EACH_PEER)
            .sharing()
            .needs(TWO_SHOT_REDUCES),
        // To the rank that reduces a slice, and from there to all.
        rows.of(Variant.TWO_SHOT_PUSH, Protocol.rounds(THEIRS, MINE), TWO_SLICES_FOR_EACH_PEER)
            .sharing()
            .needs(new WorkspaceFits()),
        rows.of(Variant.MULTIMEM, Protocol.SLICES, ONCE_AND_SLICE)
            .adds(Numerics.SWITCH_ORDER)
            .sharing()
            .needs(SWITCH_REDUCES),
        rows.of(Variant.NCCL_SYMM, Protocol.SLICES, TWO_SLICES_FOR_EACH_PEER)
            .adds(Numerics.NCCL)
            .sharing()
            .needs(SYMMETRIC_REDUCES),
        rows.of(Variant.NCCL, Protocol.LOCAL, TWO_SLICES_FOR_EACH_PEER)
            .adds(Numerics.NCCL)
            .sharing()
            .needs(NCCL_REDUCES));
  }

  private static Stream<Row> allGather() {
    var rows = new Rows(Kind.ALL_GATHER);
    var push = Protocol.push(WHOLE, MINE);
    return Stream.of(
        rows.of(Variant.LOCAL, Protocol.LOCAL, NOTHING),
        rows.of(Variant.ONE_SHOT, Protocol.pull(WHOLE, THEIRS), FOR_EACH_PEER),
        rows.of(Variant.PUSH, push, FOR_EACH_PEER).sharing(),
        rows.of(Variant.MULTIMEM, push, ONCE).receives(FOR_EACH_PEER).needs(new Multicast()),
        rows.of(Variant.COPY_ENGINE, push, FOR_EACH_PEER).sharing().needs(new CopyEngines()),
        rows.of(Variant.NCCL_SYMM, push, FOR_EACH_PEER).needs(SYMMETRIC),
        rows.of(Variant.NCCL_CE, push, FOR_EACH_PEER).needs(NCCL_COPIES),
        rows.of(Variant.NCCL, Protocol.LOCAL, FOR_EACH_PEER).sharing());
  }

  private static Stream<Row> reduceScatter() {
    var rows = new Rows(Kind.REDUCE_SCATTER);
    var pull = Protocol.pull(MINE, WHOLE);
    return Stream.of(
        rows.of(Variant.LOCAL, Protocol.LOCAL, NOTHING).adds(Numerics.ONE_RANK),
        rows.of(Variant.ONE_SHOT, pull, SLICE_FOR_EACH_PEER).sharing(),
        rows.of(Variant.MULTIMEM, pull, ONCE)
            .receives(SLICE)
            .adds(Numerics.SWITCH_ORDER)
            .needs(SWITCH_REDUCES),
        rows.of(Variant.NCCL_SYMM, pull, SLICE_FOR_EACH_PEER)
            .adds(Numerics.NCCL)
            .needs(SYMMETRIC_REDUCES),
        rows.of(Variant.NCCL, Protocol.LOCAL, SLICE_FOR_EACH_PEER)
            .adds(Numerics.NCCL)
            .sharing()
            .needs(NCCL_REDUCES));
  }

  private static Stream<Row> allToAll() {
    var rows = new Rows(Kind.ALL_TO_ALL);
    var push = Protocol.push(THEIRS, MINE);
    return Stream.of(
        rows.of(Variant.LOCAL, Protocol.LOCAL, NOTHING),
        rows.of(Variant.ONE_SHOT, Protocol.pull(MINE, THEIRS), SLICE_FOR_EACH_PEER),
        rows.of(Variant.PUSH, push, SLICE_FOR_EACH_PEER),
        rows.of(Variant.COPY_ENGINE, push, SLICE_FOR_EACH_PEER).needs(new CopyEngines()),
        rows.of(Variant.NCCL_CE, push, SLICE_FOR_EACH_PEER)
            .needs(NCCL_COPIES)
            .needs(new EqualRows()),
        rows.of(Variant.NCCL, Protocol.LOCAL, SLICE_FOR_EACH_PEER));
  }

  private static Stream<Row> broadcast() {
    var rows = new Rows(Kind.BROADCAST);
    // The root's link carries every copy, unless the switch, a ring or the peers replicate them.
    return Stream.of(
        rows.of(Variant.LOCAL, Protocol.LOCAL, NOTHING),
        rows.of(Variant.ONE_SHOT, Protocol.ROOT_PULL, FOR_EACH_PEER).receives(ONCE),
        rows.of(Variant.TWO_SHOT, Protocol.ROOT_RELAY, ONCE),
        rows.of(Variant.MULTIMEM, Protocol.ROOT_PUSH, ONCE).needs(new Multicast()),
        rows.of(Variant.COPY_ENGINE, Protocol.ROOT_PUSH, FOR_EACH_PEER)
            .receives(ONCE)
            .needs(new CopyEngines()),
        rows.of(Variant.NCCL, Protocol.LOCAL, ONCE));
  }

  private static Stream<Row> custom() {
    return Stream.of(
        new Rows(Kind.CUSTOM).of(Variant.CUSTOM, Protocol.ANY, ONCE).adds(Numerics.CUSTOM));
  }

  /** The rows of a kind, which are in the order of the variants. */
  private record Rows(Kind kind) {

    /** A row of which as much is received as sent, and which needs nothing more. */
    Row of(Variant variant, Protocol protocol, Wire sent) {
      return new Row(
          new VariantSpec(
              kind,
              variant,
              protocol,
              sent,
              sent,
              kind.reduces() ? Numerics.RANK_ORDER : Numerics.COPY,
              false,
              ImmutableList.of()));
    }
  }

  /** Gives a row what is not as usual. */
  private record Row(VariantSpec spec) {

    Row receives(Wire received) {
      return with(received, spec.numerics(), spec.sharesMemory(), spec.requirements());
    }

    Row adds(Numerics numerics) {
      return with(spec.received(), numerics, spec.sharesMemory(), spec.requirements());
    }

    Row sharing() {
      return with(spec.received(), spec.numerics(), true, spec.requirements());
    }

    Row needs(Requirement requirement) {
      return needs(ImmutableList.of(requirement));
    }

    Row needs(ImmutableList<Requirement> more) {
      var all = ImmutableList.<Requirement>builder().addAll(spec.requirements()).addAll(more);
      return with(spec.received(), spec.numerics(), spec.sharesMemory(), all.build());
    }

    private Row with(
        Wire received,
        Numerics numerics,
        boolean sharesMemory,
        ImmutableList<Requirement> requirements) {
      return new Row(
          new VariantSpec(
              spec.kind(),
              spec.variant(),
              spec.protocol(),
              spec.sent(),
              received,
              numerics,
              sharesMemory,
              requirements));
    }
  }
}
