package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.LongStream;

/**
 * Takes PyTorch's {@code all_to_all_vdev} apart, whose sizes only the device knows. Each rank sends
 * every other as many rows as it has at all, so that sizes are fixed; what is not meant for a rank
 * is left out by indices.
 *
 * <p>A rank's {@code in_splits} are the rows for each part of each rank, where a part is an expert
 * of {@code all_to_all_vdev_2d}, and the rank itself of {@code all_to_all_vdev}. The rows that a
 * rank gets lie by part first, and then by the rank that sent them. Parts begin at multiples of
 * {@code major_align} and have at least one of these.
 *
 * <p>{@code all_to_all_vdev_2d_offset} is the way back. Its {@code in_splits_offsets} are the rows
 * for each rank of each part, and where these begin. The rows that a rank gets lie by the rank that
 * sent them first, and then by part, without gaps.
 */
final class VariableAllToAll {
  private static final String OFFSETS = "in_splits_offsets";

  private static final Set<String> NAMES =
      Set.of("all_to_all_vdev", "all_to_all_vdev_2d", "all_to_all_vdev_2d_offset");

  /** Offsets of any number of parts stay far below 2^63. */
  private static final long MAX_ALIGN = 1L << 32;

  private final OpCall call;
  private final OpEmitter emitter;
  private final Value input;
  private final Value out;
  private final Value inSplits;

  /** Whether the op says where rows begin, and parts come before ranks. */
  private final boolean back;

  private final String group;
  private final long ranks;
  private final long parts;
  private final long rows;

  private VariableAllToAll(OpEmitter emitter) {
    this.call = new OpCall(emitter.at().def(), emitter.copier().now(emitter.at().args()));
    this.emitter = emitter;
    this.input = call.value("input");
    this.out = call.value("out");
    this.back = call.schema().hasParam(OFFSETS);
    this.inSplits = call.value(back ? OFFSETS : "in_splits");
    this.group = call.string("group_name");
    this.ranks = emitter.groupSize().applyAsInt(group);
    check();
    this.parts = inSplits.tensor().size(back ? 1 : 0) / ranks;
    this.rows = input.tensor().size(0);
  }

  static boolean is(OpDef def) {
    var name = def.name();
    return name.namespace().equals("symm_mem") && NAMES.contains(name.name());
  }

  /**
   * Emits what the op does.
   *
   * @throws CompileException when the tensors do not fit
   */
  static void emit(OpEmitter emitter) {
    var exchange = new VariableAllToAll(emitter);
    if (exchange.back) {
      exchange.exchangeBack();
    } else {
      exchange.exchange();
    }
  }

  private void check() {
    var from = input.tensor();
    var to = out.tensor();
    if (from.rank() == 0
        || from.size(0) == 0
        || to.rank() != from.rank()
        || to.dtype() != from.dtype()
        || !to.sizes().subArray(1, to.rank()).equals(from.sizes().subArray(1, from.rank()))) {
      throw emitter.error("cannot move rows of %s into %s".formatted(from, to));
    }
    boolean aligns = call.schema().hasParam("major_align");
    var splits = inSplits.tensor();
    int dim = back ? 1 : 0;
    if (splits.dtype() != DType.I64
        || splits.rank() != dim + 1
        || splits.numel() == 0
        || (back && splits.size(0) != 2)
        || splits.size(dim) % ranks != 0
        || (!aligns && !back && splits.size(dim) != ranks)) {
      throw emitter.error(
          "%s must be i64[%s%s%s], not %s"
              .formatted(
                  back ? OFFSETS : "in_splits",
                  back ? "2, " : "",
                  aligns || back ? "n * " : "",
                  ranks,
                  splits));
    }
    var offsets = call.value("out_splits_offsets").tensor();
    if (offsets.dtype() != DType.I64
        || offsets.rank() != 2
        || offsets.size(0) != 2
        || offsets.size(1) != splits.size(dim)) {
      throw emitter.error(
          "out_splits_offsets must be i64[2, %s], not %s".formatted(splits.size(dim), offsets));
    }
    if (aligns && (align() < 1 || align() > MAX_ALIGN)) {
      throw emitter.error("major_align must be 1 to " + MAX_ALIGN);
    }
  }

  private long align() {
    return call.has("major_align") ? call.integer("major_align") : 1;
  }

  private void exchange() {
    requireAll(
        op("aten::logical_and", isSplit(inSplits), op("aten::le.Scalar", sums(inSplits, 0), rows)),
        "in_splits are negative, or more than the rows of the input");
    // By rank that sends, then by part.
    var splits = allToAll("splits", inSplits, parts);
    var sent = matrix(splits, ranks, parts);
    var before = op("aten::sub.Tensor", sums(sent, 1), sent);
    var received = allToAll("rows", padded(), rows);
    var first = column(op("aten::arange.start_step", 0, ranks * rows, rows));
    // By part, then by rank that sent it.
    var sizes = op("aten::t", sent);
    var from = flat(op("aten::t", op("aten::add.Tensor", first, before)));
    var starts = flat(starts(sizes));
    var flatSizes = flat(sizes);
    compact(received, from, starts, flatSizes);
    op("aten::copy_", call.value("out_splits_offsets"), rows(flatSizes, starts));
  }

  private void exchangeBack() {
    var splits = op("aten::select.int", inSplits, 0, 0);
    var offsets = op("aten::select.int", inSplits, 0, 1);
    var last = op("aten::rsub.Scalar", splits, rows);
    var within =
        op(
            "aten::logical_and",
            op("aten::ge.Scalar", offsets, 0),
            op("aten::le.Tensor", offsets, last));
    requireAll(
        op(
            "aten::logical_and",
            isSplit(splits),
            op("aten::logical_or", op("aten::eq.Scalar", splits, 0), within)),
        "in_splits_offsets name rows that the input does not have");
    var table = op("aten::view", contiguous(inSplits), Arg.Seq.of(2, parts, ranks));
    // By rank that gets them; for each, splits and where they begin, by part.
    var byRank = flat(op("aten::permute", table, Arg.Seq.of(2, 0, 1)));
    var received = allToAll("splits", byRank, 2 * parts);
    var both = op("aten::view", received, Arg.Seq.of(ranks, 2, parts));
    var sizes = op("aten::select.int", both, 1, 0);
    var begins = op("aten::select.int", both, 1, 1);
    var all = emitter.allGather(target("rows"), contiguous(input), 0, group, Arg.None.NONE);
    var first = column(op("aten::arange.start_step", 0, ranks * rows, rows));
    var from = flat(op("aten::add.Tensor", first, begins));
    var flatSizes = flat(sizes);
    var starts = op("aten::sub.Tensor", sums(flatSizes, 0), flatSizes);
    compact(all, from, starts, flatSizes);
    op("aten::copy_", call.value("out_splits_offsets"), rows(flatSizes, starts));
  }

  /** {@return the rows for each rank one after another, as many as there are at all} */
  private Value padded() {
    var each = op("aten::sum.dim_IntList", matrix(inSplits, ranks, parts), Arg.Seq.of(1));
    var first = column(op("aten::sub.Tensor", sums(each, 0), each));
    var own = row(op("aten::arange.start_step", 0, rows, 1));
    var index = op("aten::clamp", op("aten::add.Tensor", first, own), 0, rows - 1);
    return op("aten::index_select", input, 0, flat(index));
  }

  /** {@return where the rows of each part and rank begin} */
  private Value starts(Value sizes) {
    var within = op("aten::sub.Tensor", sums(sizes, 1), sizes);
    var whole = op("aten::sum.dim_IntList", sizes, Arg.Seq.of(1));
    if (call.schema().hasParam("major_align")) {
      long align = align();
      var up = op("aten::add.Scalar", op("aten::clamp_min", whole, 1), align - 1);
      // GPUs do not divide integers.
      whole =
          Long.bitCount(align) == 1
              ? op("aten::bitwise_and.Scalar", up, -align)
              : op("aten::mul.Scalar", op("aten::floor_divide.Scalar", up, align), align);
    }
    return op("aten::add.Tensor", column(op("aten::sub.Tensor", sums(whole, 0), whole)), within);
  }

  /** {@return whether each is a number of rows that the input may have} */
  private Value isSplit(Value splits) {
    return op(
        "aten::logical_and", op("aten::ge.Scalar", splits, 0), op("aten::le.Scalar", splits, rows));
  }

  /** Ends the run where this rank's numbers do not fit; nothing is written elsewhere even then. */
  private void requireAll(Value holds, String message) {
    emitter.require(op("aten::all.dim", holds, 0), call.schema().name() + ": " + message);
  }

  /** Each row of {@code out} is of the last part and rank that begin before it, or stays. */
  private void compact(Value received, Value from, Value starts, Value sizes) {
    var ends = op("aten::add.Tensor", starts, sizes);
    requireAll(
        op(
            "aten::logical_or",
            op("aten::eq.Scalar", sizes, 0),
            op("aten::le.Scalar", ends, out.tensor().size(0))),
        "the ranks send more rows than out has");
    var places = op("aten::arange.start_step", 0, out.tensor().size(0), 1);
    var begun = op("aten::le.Tensor", row(starts), column(places));
    var count = op("aten::sum.dim_IntList", begun, Arg.Seq.of(1));
    var segment = op("aten::sub.Scalar", count, 1);
    var within = op("aten::sub.Tensor", places, select(starts, segment));
    var isRow = op("aten::lt.Tensor", within, select(sizes, segment));
    var index = op("aten::add.Tensor", select(from, segment), within);
    var taken = select(received, op("aten::clamp", index, 0, ranks * rows - 1));
    var shape = new long[out.tensor().rank()];
    Arrays.fill(shape, 1);
    shape[0] = out.tensor().size(0);
    op(
        "aten::copy_",
        out,
        op("aten::where.self", op("aten::view", isRow, Arg.Seq.of(shape)), taken, out));
  }

  private Value allToAll(String name, Value operand, long rowsEach) {
    var all = Arg.Seq.of(LongStream.generate(() -> rowsEach).limit(ranks));
    return emitter.allToAll(target(name), operand, all, all, group);
  }

  private Value select(Value from, Value indices) {
    return op("aten::index_select", from, 0, indices);
  }

  private Value sums(Value value, int dim) {
    return op("aten::cumsum", value, dim);
  }

  private Value matrix(Value value, long rowCount, long columns) {
    return op("aten::view", contiguous(value), Arg.Seq.of(rowCount, columns));
  }

  private Value flat(Value value) {
    return op("aten::view", contiguous(value), Arg.Seq.of(value.tensor().numel()));
  }

  private Value contiguous(Value value) {
    return value.tensor().isContiguous()
        ? value
        : op("aten::clone", value, new Arg.Symbol("contiguous_format"));
  }

  private Value column(Value value) {
    return op("aten::unsqueeze", value, 1);
  }

  private Value row(Value value) {
    return op("aten::unsqueeze", value, 0);
  }

  private Value rows(Value first, Value second) {
    var both = new Arg.Seq(ImmutableList.of(new Arg.Ref(row(first)), new Arg.Ref(row(second))));
    return op("aten::cat", both, 0);
  }

  private Value op(String name, Object... args) {
    var all = new Arg[args.length];
    for (int i = 0; i < args.length; i++) {
      all[i] =
          switch (args[i]) {
            case Value value -> new Arg.Ref(value);
            case Number number -> new Arg.Int(number.longValue());
            case Arg arg -> arg;
            default -> throw new IllegalArgumentException(String.valueOf(args[i]));
          };
    }
    return emitter.emit(target("part"), name, all);
  }

  private Target target(String suffix) {
    return Target.of(out.name() + "_" + suffix);
  }
}
