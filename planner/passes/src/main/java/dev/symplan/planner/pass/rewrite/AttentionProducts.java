package dev.symplan.planner.pass.rewrite;

import static dev.symplan.planner.pass.rewrite.TensorEmitter.lastSize;
import static dev.symplan.planner.pass.rewrite.TensorEmitter.ref;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.pass.rewrite.LowerAttention.Bounds;
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

  /** The results of attention: [units, group, rows, features], and [units, group, rows]. */
  record Forward(Value out, Optional<Value> logs) {}

  /** The gradients; those of keys and values are [units, keys, features]. */
  record Gradients(Value ofQuery, Value ofKey, Value ofValue) {}

  private final TensorEmitter on;
  private final OpCall call;
  private final AttentionSizes sizes;
  private final DType dtype;
  private final AttentionScores scores;
  private final List<List<AttentionBlock>> blocks;
  private final Value query;
  private final Value key;
  private final Value value;

  AttentionProducts(OpEmitter emitter, Bounds bounds) {
    this.on = new TensorEmitter(emitter);
    this.call = new OpCall(emitter.at().def(), emitter.copier().now(emitter.at().args()));
    this.sizes = AttentionSizes.of(call.tensor("query"), call.tensor("key"));
    this.dtype = call.tensor("query").dtype() == DType.F64 ? DType.F64 : DType.F32;
    this.scores = new AttentionScores(on, sizes, dtype, call);
    this.blocks =
        AttentionBlock.of(sizes, bounds, dtype.bytes(), scores.isCausal(), !scores.isSharedBias());
    // The scale of queries is that of scores, of which there are more.
    this.query = scores.scaled(operand("query", sizes.group(), sizes.rows()));
    this.key = operand("key", 1, sizes.keys());
    this.value = operand("value", 1, sizes.keys());
  }

  Forward forward(boolean wantsLogs) {
    var out = new ArrayList<Value>();
    var logs = new ArrayList<Value>();
    for (var own : blocks) {
      var parts = new ArrayList<Value>();
      var logParts = new ArrayList<Value>();
      for (var block : own) {
        var queries = block.rowsOf(on, query);
        var ofBlock = scores.scores(block, queries, block.keysOf(on, key));
        if (wantsLogs) {
          var log = hiddenAs(Double.POSITIVE_INFINITY, logSum(ofBlock));
          logParts.add(on.reshape(log, block.units(), sizes.group(), block.rows()));
        }
        var weights = on.emit("weights", "aten::_safe_softmax", ref(ofBlock), new Arg.Int(-1));
        var product = on.product(block.joined(on, weights), block.keysOf(on, value));
        parts.add(on.reshape(product, block.units(), sizes.group(), block.rows(), lastSize(value)));
      }
      out.add(on.cat(parts, 2));
      logs.addAll(wantsLogs ? List.of(on.cat(logParts, 2)) : List.of());
    }
    return new Forward(on.cat(out, 0), wantsLogs ? Optional.of(on.cat(logs, 0)) : Optional.empty());
  }

  Gradients backward() {
    var grad = operand(AttentionOps.gradient(call.def()), sizes.group(), sizes.rows());
    var out = operand("out", sizes.group(), sizes.rows());
    var both = on.emit("slope", "aten::mul.Tensor", ref(grad), ref(out));
    var delta =
        on.emit("delta", "aten::sum.dim_IntList", ref(both), Arg.Seq.of(-1), new Arg.Bool(true));
    var logs = savedLogs();
    var ofQuery = new ArrayList<Value>();
    var ofKey = new ArrayList<Value>();
    var ofValue = new ArrayList<Value>();
    for (var own : blocks) {
      var parts = new ArrayList<Value>();
      Optional<Value> sumOfKey = Optional.empty();
      Optional<Value> sumOfValue = Optional.empty();
      // The last sees the most keys.
      for (var block : own.reversed()) {
        var grads = block.rowsOf(on, grad);
        var queries = block.rowsOf(on, query);
        var ofBlock = scores.scores(block, queries, block.keysOf(on, key));
        var less = on.emit("scores", "aten::sub.Tensor", ref(ofBlock), ref(block.apart(on, logs)));
        var weights = on.emit("weights", "aten::exp", ref(less));
        var product =
            block.separated(on, on.product(grads, on.transposed(block.keysOf(on, value))));
        var diff = on.emit("slope", "aten::sub.Tensor", ref(product), ref(block.apart(on, delta)));
        var slope = on.emit("slope", "aten::mul.Tensor", ref(weights), ref(diff));
        var slopes = block.joined(on, slope);
        var ofRows = on.product(slopes, block.keysOf(on, key));
        parts.add(on.reshape(ofRows, block.units(), sizes.group(), block.rows(), lastSize(key)));
        sumOfKey = Optional.of(added(sumOfKey, on.transposed(slopes), queries));
        sumOfValue =
            Optional.of(added(sumOfValue, on.transposed(block.joined(on, weights)), grads));
      }
      ofQuery.add(scores.scaled(on.cat(parts.reversed(), 2)));
      ofKey.add(ofAllKeys(sumOfKey.orElseThrow()));
      ofValue.add(ofAllKeys(sumOfValue.orElseThrow()));
    }
    return new Gradients(on.cat(ofQuery, 0), on.cat(ofKey, 0), on.cat(ofValue, 0));
  }

  /** The logarithms of sums; any number will do for rows that see no key. */
  private Value savedLogs() {
    var saved = call.value("logsumexp");
    var type = saved.tensor();
    var flat =
        type.rank() == 4
            ? on.emit("log_sum", "aten::squeeze.dim", ref(saved), new Arg.Int(3))
            : saved;
    var own = on.slice(flat, 2, 0, sizes.rows());
    var wide = on.reshape(on.cast(own, dtype), sizes.units(), sizes.group(), sizes.rows(), 1);
    return hiddenAs(0, wide);
  }

  private Value logSum(Value scores) {
    return on.emit("log_sum", "aten::logsumexp", ref(scores), Arg.Seq.of(-1));
  }

  /** Another number for rows that see no key. */
  private Value hiddenAs(double number, Value logs) {
    var hidden =
        on.emit("hidden", "aten::eq.Scalar", ref(logs), new Arg.Float(Double.NEGATIVE_INFINITY));
    return on.emit(
        "log_sum", "aten::masked_fill.Scalar", ref(logs), ref(hidden), new Arg.Float(number));
  }

  /** Lets later ops read this value instead of a result of the op. */
  void give(Value made, Value result) {
    var type = result.tensor();
    var shaped = on.reshape(made, type.sizes().toArray());
    if (dtype != type.dtype()) {
      on.emitter().emitAs(result, "aten::_to_copy", ref(shaped), new Arg.Dtype(type.dtype()));
    } else {
      on.emitter().emitAs(result, "aten::clone", ref(shaped));
    }
  }

  /** As {@link #give}; rows of the result that no query has are infinity, too. */
  void giveLogs(Value made, Value result) {
    var type = result.tensor();
    long more = type.rank() == 3 ? type.size(2) - sizes.rows() : 0;
    var padded =
        more == 0
            ? made
            : on.emit(
                "log_sum",
                "aten::constant_pad_nd",
                ref(made),
                Arg.Seq.of(0, more),
                new Arg.Float(Double.POSITIVE_INFINITY));
    give(padded, result);
  }

  /** An operand as [units, group, rows, features], in the type in which all is computed. */
  private Value operand(String param, long ofGroup, long count) {
    var given = on.cast(call.value(param), dtype);
    return on.reshape(given, sizes.units(), ofGroup, count, lastSize(given));
  }

  /** With 0 for keys that no block sees. */
  private Value ofAllKeys(Value sum) {
    long more = sizes.keys() - sum.tensor().size(1);
    return more == 0
        ? sum
        : on.emit(
            "sum", "aten::constant_pad_nd", ref(sum), Arg.Seq.of(0, 0, 0, more), new Arg.Float(0));
  }

  /** A product more; that of a block which sees few keys is added to the sums of these alone. */
  private Value added(Optional<Value> sum, Value left, Value right) {
    if (sum.isEmpty()) {
      return on.product(left, right);
    }
    long seen = left.tensor().size(1);
    var own = on.slice(sum.get(), 1, 0, seen);
    var more = on.emit("sum", "aten::baddbmm", ref(own), ref(left), ref(right));
    long all = sum.get().tensor().size(1);
    return seen == all ? more : on.cat(List.of(more, on.slice(sum.get(), 1, seen, all)), 1);
  }
}
