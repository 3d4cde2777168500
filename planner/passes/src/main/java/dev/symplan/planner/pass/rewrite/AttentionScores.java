package dev.symplan.planner.pass.rewrite;

import static dev.symplan.planner.pass.rewrite.TensorEmitter.ref;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.op.OpCall;
import java.util.Optional;

/**
 * The scores of attention, block by block: the products of queries and keys with what is added to
 * them or hides them.
 */
final class AttentionScores {

  /** So many units make what all of them add small beside their scores. */
  private static final int MIN_SHARING = 4;

  private final TensorEmitter on;
  private final AttentionSizes sizes;
  private final DType dtype;
  private final boolean causal;
  private final double scale;
  private final Optional<Value> bias;
  private Optional<Value> positions = Optional.empty();

  /**
   * @param dtype of the scores
   */
  AttentionScores(TensorEmitter on, AttentionSizes sizes, DType dtype, OpCall call) {
    this.on = on;
    this.sizes = sizes;
    this.dtype = dtype;
    this.causal = call.bool("is_causal");
    this.scale = AttentionOps.scale(call);
    this.bias =
        AttentionOps.bias(call.def())
            .filter(call::has)
            .map(_ -> new AttentionBias(on.emitter()).fourDimensional(call));
  }

  boolean isCausal() {
    return causal;
  }

  /** Whether all heads of all batches add the same, if anything. */
  boolean isSharedBias() {
    return bias.map(own -> own.tensor().size(0) == 1 && own.tensor().size(1) == 1).orElse(true);
  }

  Value scaled(Value value) {
    return on.emit("scaled", "aten::mul.Scalar", ref(value), new Arg.Float(scale));
  }

  /**
   * {@return the scores of a block, [units · group, rows, keys]}
   *
   * @param queries of the block's rows, {@linkplain #scaled scaled}
   */
  Value scores(AttentionBlock block, Value queries, Value keysOfBlock) {
    var own = bias.map(whole -> biasOf(whole, block));
    boolean seesAll = !causal || block.firstRow() + 1 >= block.keys();
    if (addsAtOnce(block, own, seesAll)) {
      var turned = on.transposed(keysOfBlock);
      var addend = addend(block, own, seesAll);
      return block.separated(
          on, on.emit("scores", "aten::baddbmm", ref(addend), ref(queries), ref(turned)));
    }
    var scores = block.separated(on, on.product(queries, on.transposed(keysOfBlock)));
    if (own.isPresent()) {
      scores =
          own.get().tensor().dtype() == DType.BOOL
              ? hide(scores, own.get())
              : on.emit("scores", "aten::add.Tensor", ref(scores), ref(own.get()));
    }
    return seesAll ? scores : hide(scores, mask(block));
  }

  /**
   * Whether a product adds what hides keys or is added to scores. It must not take as much memory
   * as the scores.
   */
  private boolean addsAtOnce(AttentionBlock block, Optional<Value> own, boolean seesAll) {
    if (isSharedBias()) {
      return (own.isPresent() || !seesAll) && block.units() >= MIN_SHARING;
    }
    return seesAll && sizes.group() == 1 && own.orElseThrow().tensor().dtype() == dtype;
  }

  private Value addend(AttentionBlock block, Optional<Value> own, boolean seesAll) {
    if (!isSharedBias()) {
      return own.orElseThrow();
    }
    var numbers = own.map(this::asNumbers);
    var whole =
        seesAll
            ? numbers.orElseThrow()
            : numbers.map(all -> hide(all, mask(block))).orElseGet(() -> asNumbers(mask(block)));
    return sizes.group() == 1 ? whole : forGroup(whole, block);
  }

  /** Once for each head of a group: [group · rows, keys]. */
  private Value forGroup(Value numbers, AttentionBlock block) {
    var wide = Arg.Seq.of(sizes.group(), block.rows(), block.keys());
    return on.reshape(
        on.emit("bias", "aten::expand", ref(numbers), wide),
        sizes.group() * block.rows(),
        block.keys());
  }

  /** 0 for true and minus infinity for false, or the numbers of another type. */
  private Value asNumbers(Value own) {
    if (own.tensor().dtype() != DType.BOOL) {
      return on.cast(own, dtype);
    }
    var numbers =
        on.emit(
            "bias",
            "aten::where.Scalar",
            ref(own),
            new Arg.Float(0),
            new Arg.Float(Double.NEGATIVE_INFINITY));
    return on.cast(numbers, dtype);
  }

  private Value hide(Value scores, Value seen) {
    return on.emit(
        "scores",
        "aten::where.ScalarOther",
        ref(seen),
        ref(scores),
        new Arg.Float(Double.NEGATIVE_INFINITY));
  }

  /** Which keys the rows of a block see, [1, rows, keys]: those up to their own number. */
  private Value mask(AttentionBlock block) {
    if (positions.isEmpty()) {
      positions =
          Optional.of(
              on.emit(
                  "positions", "aten::arange", new Arg.Int(Math.max(sizes.rows(), sizes.keys()))));
    }
    var columns = on.slice(positions.get(), 0, 0, block.keys());
    var line = on.slice(positions.get(), 0, block.firstRow(), block.lastRow());
    var lines = on.reshape(line, 1, block.rows(), 1);
    return on.emit("seen", "aten::le.Tensor", ref(columns), ref(lines));
  }

  /** The bias of a block: [rows, keys] if all heads share it, else of each head. */
  private Value biasOf(Value whole, AttentionBlock block) {
    if (!isSharedBias() && block.units() > sizes.heads()) {
      return biasOfBatches(whole, block);
    }
    var type = whole.tensor();
    long batch = block.firstUnit() / sizes.heads();
    long head = block.firstUnit() % sizes.heads() * sizes.group();
    var ofBatch = on.select(whole, 0, type.size(0) == 1 ? 0 : batch);
    var ofHeads =
        type.size(1) == 1
            ? ofBatch
            : on.slice(ofBatch, 0, head, head + block.units() * sizes.group());
    var ofRows =
        type.size(2) == 1 ? ofHeads : on.slice(ofHeads, 1, block.firstRow(), block.lastRow());
    return type.size(3) == 1 ? ofRows : on.slice(ofRows, 2, 0, block.keys());
  }

  /** As {@link #biasOf}, where a block has all heads of several batches. */
  private Value biasOfBatches(Value whole, AttentionBlock block) {
    var type = whole.tensor();
    long first = block.firstUnit() / sizes.heads();
    long last = block.lastUnit() / sizes.heads();
    var batches = type.size(0) == 1 ? whole : on.slice(whole, 0, first, last);
    var ofRows =
        type.size(2) == 1 ? batches : on.slice(batches, 2, block.firstRow(), block.lastRow());
    var own = type.size(3) == 1 ? ofRows : on.slice(ofRows, 3, 0, block.keys());
    long rowsOfOwn = own.tensor().size(2);
    long keysOfOwn = own.tensor().size(3);
    var wide = Arg.Seq.of(last - first, sizes.heads() * sizes.group(), rowsOfOwn, keysOfOwn);
    var each = on.emit("part", "aten::expand", ref(own), wide);
    return on.reshape(each, block.units() * sizes.group(), rowsOfOwn, keysOfOwn);
  }
}
