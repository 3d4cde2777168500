package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.pass.rewrite.LowerAttention.Bounds;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Attention as batched products and softmax, block by block, so that no more than one block of
 * scores is in memory; gradients are those of FlashAttention (Dao et al. 2022). All is computed in
 * f32, or f64 for f64, and rounded once.
 *
 * <p>A unit is a head of keys of one batch, with the group of heads of queries that share it. A
 * block is some units, or some rows of one. Operands are [units, group, rows, features].
 */
final class AttentionProducts {

  private static final int MAX_BLOCKS = 256;

  /** More leave out more of what is hidden, but their products are too small for a GPU. */
  private static final int MAX_CAUSAL_PARTS = 4;

  /** So many units make what all of them add small beside their scores. */
  private static final int MIN_SHARING = 4;

  /** The results of attention: [units, group, rows, features], and [units, group, rows]. */
  record Forward(Value out, Optional<Value> logs) {}

  /** The gradients; those of keys and values are [units, keys, features]. */
  record Gradients(Value ofQuery, Value ofKey, Value ofValue) {}

  /** The units and rows of a block, and the keys that it sees. */
  private record Block(long firstUnit, long lastUnit, long firstRow, long lastRow, long keys) {
    long units() {
      return lastUnit - firstUnit;
    }

    long rows() {
      return lastRow - firstRow;
    }
  }

  private final OpEmitter emitter;
  private final Bounds bounds;
  private final OpCall call;
  private final DType dtype;
  private final boolean causal;
  private final double scale;
  private final Optional<Value> bias;
  private final long heads;
  private final long group;
  private final long units;
  private final long rows;
  private final long keys;
  private final Value query;
  private final Value key;
  private final Value value;
  private Optional<Value> positions = Optional.empty();

  AttentionProducts(OpEmitter emitter, Bounds bounds) {
    var op = emitter.at();
    this.emitter = emitter;
    this.bounds = bounds;
    this.call = new OpCall(op.def(), emitter.copier().now(op.args()));
    var queryType = call.tensor("query");
    var keyType = call.tensor("key");
    int rank = queryType.rank();
    this.dtype = queryType.dtype() == DType.F64 ? DType.F64 : DType.F32;
    this.causal = call.bool("is_causal");
    this.scale = AttentionOps.scale(call);
    this.rows = queryType.size(rank - 2);
    this.keys = keyType.size(rank - 2);
    this.heads = rank > 2 ? keyType.size(rank - 3) : 1;
    this.group = rank > 2 ? queryType.size(rank - 3) / heads : 1;
    this.units = heads * (rank > 3 ? queryType.size(0) : 1);
    this.bias =
        AttentionOps.bias(op.def())
            .filter(call::has)
            .map(_ -> new AttentionBias(emitter).fourDimensional(call));
    this.query = operand("query", group, rows);
    this.key = operand("key", 1, keys);
    this.value = operand("value", 1, keys);
  }

  /** {@return the blocks of a unit's rows, for each of the groups of units} */
  private List<List<Block>> blocks() {
    long bytes = dtype.bytes() * group * keys;
    long most = Math.max(bounds.block(), units * rows * bytes / MAX_BLOCKS);
    long parts = causal ? Math.clamp(rows / bounds.causalRows(), 1, MAX_CAUSAL_PARTS) : 1;
    long height = Math.clamp(most / bytes, 1, Math.ceilDiv(rows, parts));
    long count = Math.clamp(most / (bytes * height), 1, units);
    // A bias of each head or batch is cut into parts of a batch, or into whole ones.
    while (bias.isPresent() && !isSharedBias() && heads % count != 0 && count % heads != 0) {
      count--;
    }
    var all = new ArrayList<List<Block>>();
    for (long unit = 0; unit < units; unit += count) {
      var own = new ArrayList<Block>();
      for (long row = 0; row < rows; row += height) {
        long lastRow = Math.min(rows, row + height);
        long seen = parts > 1 ? Math.min(keys, lastRow) : keys;
        own.add(new Block(unit, Math.min(units, unit + count), row, lastRow, seen));
      }
      all.add(own);
    }
    return all;
  }

  private boolean isSharedBias() {
    return bias.map(own -> own.tensor().size(0) == 1 && own.tensor().size(1) == 1).orElse(true);
  }

  Forward forward(boolean wantsLogs) {
    var out = new ArrayList<Value>();
    var logs = new ArrayList<Value>();
    for (var own : blocks()) {
      var parts = new ArrayList<Value>();
      var logParts = new ArrayList<Value>();
      for (var block : own) {
        var queries = queries(block);
        var scores = scores(block, queries, keysOf(key, block));
        if (wantsLogs) {
          var log = hiddenAs(Double.POSITIVE_INFINITY, logSum(scores));
          logParts.add(reshape(log, block.units(), group, block.rows()));
        }
        var weights = emit("weights", "aten::_safe_softmax", ref(scores), new Arg.Int(-1));
        var product = product(joined(weights, block), keysOf(value, block));
        parts.add(reshape(product, block.units(), group, block.rows(), features(value)));
      }
      out.add(cat(parts, 2));
      logs.addAll(wantsLogs ? List.of(cat(logParts, 2)) : List.of());
    }
    return new Forward(cat(out, 0), wantsLogs ? Optional.of(cat(logs, 0)) : Optional.empty());
  }

  Gradients backward() {
    var grad = operand(AttentionOps.gradient(call.def()), group, rows);
    var out = operand("out", group, rows);
    var both = emit("slope", "aten::mul.Tensor", ref(grad), ref(out));
    var delta =
        emit("delta", "aten::sum.dim_IntList", ref(both), Arg.Seq.of(-1), new Arg.Bool(true));
    var logs = savedLogs();
    var ofQuery = new ArrayList<Value>();
    var ofKey = new ArrayList<Value>();
    var ofValue = new ArrayList<Value>();
    for (var own : blocks()) {
      var parts = new ArrayList<Value>();
      Optional<Value> sumOfKey = Optional.empty();
      Optional<Value> sumOfValue = Optional.empty();
      // The last sees the most keys.
      for (var block : own.reversed()) {
        var grads = rowsOf(grad, block);
        var queries = queries(block);
        var scores = scores(block, queries, keysOf(key, block));
        var less = emit("scores", "aten::sub.Tensor", ref(scores), ref(apart(logs, block)));
        var weights = emit("weights", "aten::exp", ref(less));
        var product = separated(product(grads, transposed(keysOf(value, block))), block);
        var diff = emit("slope", "aten::sub.Tensor", ref(product), ref(apart(delta, block)));
        var slope = emit("slope", "aten::mul.Tensor", ref(weights), ref(diff));
        var slopes = joined(slope, block);
        var ofRows = product(slopes, keysOf(key, block));
        parts.add(reshape(ofRows, block.units(), group, block.rows(), features(key)));
        sumOfKey = Optional.of(added(sumOfKey, transposed(slopes), queries));
        sumOfValue = Optional.of(added(sumOfValue, transposed(joined(weights, block)), grads));
      }
      ofQuery.add(scaled(cat(parts.reversed(), 2)));
      ofKey.add(ofAllKeys(sumOfKey.orElseThrow()));
      ofValue.add(ofAllKeys(sumOfValue.orElseThrow()));
    }
    return new Gradients(cat(ofQuery, 0), cat(ofKey, 0), cat(ofValue, 0));
  }

  /** The logarithms of sums; any number will do for rows that see no key. */
  private Value savedLogs() {
    var saved = call.value("logsumexp");
    var type = saved.tensor();
    var flat =
        type.rank() == 4 ? emit("log_sum", "aten::squeeze.dim", ref(saved), new Arg.Int(3)) : saved;
    var own = slice(flat, 2, 0, rows);
    var wide = reshape(cast(own, dtype), units, group, rows, 1);
    return hiddenAs(0, wide);
  }

  private Value logSum(Value scores) {
    return emit("log_sum", "aten::logsumexp", ref(scores), Arg.Seq.of(-1));
  }

  /** Another number for rows that see no key. */
  private Value hiddenAs(double number, Value logs) {
    var hidden =
        emit("hidden", "aten::eq.Scalar", ref(logs), new Arg.Float(Double.NEGATIVE_INFINITY));
    return emit(
        "log_sum", "aten::masked_fill.Scalar", ref(logs), ref(hidden), new Arg.Float(number));
  }

  /** Lets later ops read this value instead of a result of the op. */
  void give(Value made, Value result) {
    var type = result.tensor();
    var shaped = reshape(made, type.sizes().toArray());
    if (dtype != type.dtype()) {
      emitter.emitAs(result, "aten::_to_copy", ref(shaped), new Arg.Dtype(type.dtype()));
    } else {
      emitter.emitAs(result, "aten::clone", ref(shaped));
    }
  }

  /** As {@link #give}; rows of the result that no query has are infinity, too. */
  void giveLogs(Value made, Value result) {
    var type = result.tensor();
    long more = type.rank() == 3 ? type.size(2) - rows : 0;
    var padded =
        more == 0
            ? made
            : emit(
                "log_sum",
                "aten::constant_pad_nd",
                ref(made),
                Arg.Seq.of(0, more),
                new Arg.Float(Double.POSITIVE_INFINITY));
    give(padded, result);
  }

  /** A block's queries times the scale, which are fewer than its scores. */
  private Value queries(Block block) {
    return scaled(rowsOf(query, block));
  }

  /** The scores of a block, [units · group, rows, keys]. */
  private Value scores(Block block, Value queries, Value keysOfBlock) {
    var own = bias.map(whole -> biasOf(whole, block));
    boolean seesAll = !causal || block.firstRow() + 1 >= block.keys();
    if (addsAtOnce(block, own, seesAll)) {
      var turned = transposed(keysOfBlock);
      var addend = addend(block, own, seesAll);
      return separated(
          emit("scores", "aten::baddbmm", ref(addend), ref(queries), ref(turned)), block);
    }
    var scores = separated(product(queries, transposed(keysOfBlock)), block);
    if (own.isPresent()) {
      scores =
          own.get().tensor().dtype() == DType.BOOL
              ? hide(scores, own.get())
              : emit("scores", "aten::add.Tensor", ref(scores), ref(own.get()));
    }
    return seesAll ? scores : hide(scores, mask(block));
  }

  /**
   * Whether a product adds what hides keys or is added to scores. It must not take as much memory
   * as the scores.
   */
  private boolean addsAtOnce(Block block, Optional<Value> own, boolean seesAll) {
    if (isSharedBias()) {
      return (own.isPresent() || !seesAll) && block.units() >= MIN_SHARING;
    }
    return seesAll && group == 1 && own.orElseThrow().tensor().dtype() == dtype;
  }

  private Value addend(Block block, Optional<Value> own, boolean seesAll) {
    if (!isSharedBias()) {
      return own.orElseThrow();
    }
    var numbers = own.map(this::asNumbers);
    var whole =
        seesAll
            ? numbers.orElseThrow()
            : numbers.map(all -> hide(all, mask(block))).orElseGet(() -> asNumbers(mask(block)));
    return group == 1 ? whole : forGroup(whole, block);
  }

  /** Once for each head of a group: [group · rows, keys]. */
  private Value forGroup(Value numbers, Block block) {
    var sizes = Arg.Seq.of(group, block.rows(), block.keys());
    return reshape(
        emit("bias", "aten::expand", ref(numbers), sizes), group * block.rows(), block.keys());
  }

  /** 0 for true and minus infinity for false, or the numbers of another type. */
  private Value asNumbers(Value own) {
    if (own.tensor().dtype() != DType.BOOL) {
      return cast(own, dtype);
    }
    var numbers =
        emit(
            "bias",
            "aten::where.Scalar",
            ref(own),
            new Arg.Float(0),
            new Arg.Float(Double.NEGATIVE_INFINITY));
    return cast(numbers, dtype);
  }

  private Value hide(Value scores, Value seen) {
    return emit(
        "scores",
        "aten::where.ScalarOther",
        ref(seen),
        ref(scores),
        new Arg.Float(Double.NEGATIVE_INFINITY));
  }

  /** Which keys the rows of a block see, [1, rows, keys]: those up to their own number. */
  private Value mask(Block block) {
    if (positions.isEmpty()) {
      positions = Optional.of(emit("positions", "aten::arange", new Arg.Int(Math.max(rows, keys))));
    }
    var columns = slice(positions.get(), 0, 0, block.keys());
    var line = slice(positions.get(), 0, block.firstRow(), block.lastRow());
    var lines = reshape(line, 1, block.rows(), 1);
    return emit("seen", "aten::le.Tensor", ref(columns), ref(lines));
  }

  /** The bias of a block: [rows, keys] if all heads share it, else of each head. */
  private Value biasOf(Value whole, Block block) {
    if (!isSharedBias() && block.units() > heads) {
      return biasOfBatches(whole, block);
    }
    var type = whole.tensor();
    long batch = block.firstUnit() / heads;
    long head = block.firstUnit() % heads * group;
    var ofBatch = select(whole, 0, type.size(0) == 1 ? 0 : batch);
    var ofHeads =
        type.size(1) == 1 ? ofBatch : slice(ofBatch, 0, head, head + block.units() * group);
    var ofRows = type.size(2) == 1 ? ofHeads : slice(ofHeads, 1, block.firstRow(), block.lastRow());
    return type.size(3) == 1 ? ofRows : slice(ofRows, 2, 0, block.keys());
  }

  /** As {@link #biasOf}, where a block has all heads of several batches. */
  private Value biasOfBatches(Value whole, Block block) {
    var type = whole.tensor();
    long first = block.firstUnit() / heads;
    long last = block.lastUnit() / heads;
    var batches = type.size(0) == 1 ? whole : slice(whole, 0, first, last);
    var ofRows = type.size(2) == 1 ? batches : slice(batches, 2, block.firstRow(), block.lastRow());
    var own = type.size(3) == 1 ? ofRows : slice(ofRows, 3, 0, block.keys());
    long rowsOfOwn = own.tensor().size(2);
    long keysOfOwn = own.tensor().size(3);
    var sizes = Arg.Seq.of(last - first, heads * group, rowsOfOwn, keysOfOwn);
    var each = emit("part", "aten::expand", ref(own), sizes);
    return reshape(each, block.units() * group, rowsOfOwn, keysOfOwn);
  }

  /** An operand as [units, group, rows, features], in the type in which all is computed. */
  private Value operand(String param, long ofGroup, long count) {
    var given = cast(call.value(param), dtype);
    return reshape(given, units, ofGroup, count, features(given));
  }

  private static long features(Value value) {
    return value.tensor().size(value.tensor().rank() - 1);
  }

  private Value cast(Value value, DType to) {
    return value.tensor().dtype() == to
        ? value
        : emit("wide", "aten::_to_copy", ref(value), new Arg.Dtype(to));
  }

  /** The rows of a block, those of a group behind each other: [units, group · rows, features]. */
  private Value rowsOf(Value whole, Block block) {
    var ofUnits = slice(whole, 0, block.firstUnit(), block.lastUnit());
    var own = slice(ofUnits, 2, block.firstRow(), block.lastRow());
    return reshape(own, block.units(), group * block.rows(), features(whole));
  }

  /** The keys that a block sees: [units, keys, features]. */
  private Value keysOf(Value whole, Block block) {
    var ofUnits = slice(whole, 0, block.firstUnit(), block.lastUnit());
    var own = slice(ofUnits, 2, 0, block.keys());
    return reshape(own, block.units(), block.keys(), features(whole));
  }

  /** A number for each row of a block, [units · group, rows, 1]. */
  private Value apart(Value whole, Block block) {
    var ofUnits = slice(whole, 0, block.firstUnit(), block.lastUnit());
    var own = slice(ofUnits, 2, block.firstRow(), block.lastRow());
    return reshape(own, block.units() * group, block.rows(), 1);
  }

  /** [units, group · rows, keys] as [units · group, rows, keys]. */
  private Value separated(Value value, Block block) {
    return reshape(value, block.units() * group, block.rows(), block.keys());
  }

  /** [units · group, rows, keys] as [units, group · rows, keys]. */
  private Value joined(Value value, Block block) {
    return reshape(value, block.units(), group * block.rows(), block.keys());
  }

  private Value product(Value left, Value right) {
    return emit("product", "aten::bmm", ref(left), ref(right));
  }

  /** With 0 for keys that no block sees. */
  private Value ofAllKeys(Value sum) {
    long more = keys - sum.tensor().size(1);
    return more == 0
        ? sum
        : emit(
            "sum", "aten::constant_pad_nd", ref(sum), Arg.Seq.of(0, 0, 0, more), new Arg.Float(0));
  }

  private Value scaled(Value value) {
    return emit("scaled", "aten::mul.Scalar", ref(value), new Arg.Float(scale));
  }

  /** A product more; that of a block which sees few keys is added to the sums of these alone. */
  private Value added(Optional<Value> sum, Value left, Value right) {
    if (sum.isEmpty()) {
      return product(left, right);
    }
    long seen = left.tensor().size(1);
    var own = slice(sum.get(), 1, 0, seen);
    var more = emit("sum", "aten::baddbmm", ref(own), ref(left), ref(right));
    long all = sum.get().tensor().size(1);
    return seen == all ? more : cat(List.of(more, slice(sum.get(), 1, seen, all)), 1);
  }

  private Value transposed(Value value) {
    return emit("turned", "aten::transpose.int", ref(value), new Arg.Int(1), new Arg.Int(2));
  }

  private Value cat(List<Value> parts, int dim) {
    return parts.size() == 1
        ? parts.getFirst()
        : emit(
            "joined",
            "aten::cat",
            new Arg.Seq(
                parts.stream().<Arg>map(Arg.Ref::new).collect(ImmutableList.toImmutableList())),
            new Arg.Int(dim));
  }

  private Value slice(Value value, int dim, long from, long to) {
    return from == 0 && to == value.tensor().size(dim)
        ? value
        : emit(
            "part",
            "aten::slice.Tensor",
            ref(value),
            new Arg.Int(dim),
            new Arg.Int(from),
            new Arg.Int(to));
  }

  private Value select(Value value, int dim, long index) {
    return emit("part", "aten::select.int", ref(value), new Arg.Int(dim), new Arg.Int(index));
  }

  /** A view, if there is one. */
  private Value reshape(Value value, long... sizes) {
    return value.tensor().sizes().equals(ImmutableLongArray.copyOf(sizes))
        ? value
        : emit("shaped", "aten::reshape", ref(value), Arg.Seq.of(sizes));
  }

  private Value emit(String name, String op, Arg... args) {
    return emitter.emit(Target.of(name), op, args);
  }

  private static Arg ref(Value value) {
    return new Arg.Ref(value);
  }
}
