package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.machine.LibraryAttention;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.ArrayList;
import java.util.List;

/**
 * Gradients of attention in pieces, of some batches or of some heads of one, where a library would
 * need too much workspace for all of them.
 */
final class AttentionPieces {
  private static final int BATCH = 0;
  private static final int HEAD = 1;

  private final OpEmitter emitter;
  private final Op op;
  private final long batches;
  private final long heads;
  private final long headsInGroup;

  /** How many batches a piece may have; 0 if one is too large. */
  private final long mostBatches;

  /** How many heads of keys a piece may have; 0 if one is too large. */
  private final long mostHeads;

  /**
   * @param most the scores of a piece
   */
  AttentionPieces(OpEmitter emitter, long most) {
    this.emitter = emitter;
    this.op = emitter.at();
    var query = op.call().tensor("query");
    var key = op.call().tensor("key");
    boolean whole = query.rank() == 4;
    this.batches = whole ? query.size(BATCH) : 1;
    this.heads = whole ? key.size(HEAD) : 1;
    this.headsInGroup = whole ? query.size(HEAD) / heads : 1;
    this.mostHeads =
        LibraryAttention.gradientHeads(headsInGroup, query, key, op.call().tensor("value"), most);
    this.mostBatches = mostHeads / heads;
  }

  /** {@return whether all of it may be one piece} */
  boolean isOne() {
    return !AttentionOps.isBackward(op.def()) || mostBatches >= batches;
  }

  /** {@return whether it can be divided into pieces that are small enough} */
  boolean exist() {
    return isOne() || mostHeads > 0;
  }

  /**
   * Emits the op in pieces.
   *
   * @param args its arguments as they stand now
   */
  void emit(ImmutableList<Arg> args) {
    long together = Math.max(1, mostBatches);
    var pieces = new ArrayList<ImmutableList<Value>>();
    for (long batch = 0; batch < batches; batch += together) {
      var own = slices(args, BATCH, batch, Math.min(batches, batch + together), 1);
      pieces.add(mostBatches > 0 ? piece(own) : byHeads(own));
    }
    for (int i = 0; i < op.results().size(); i++) {
      var result = op.results().get(i);
      if (result.isTensor()) {
        give(result, column(pieces, i));
      }
    }
  }

  private ImmutableList<Value> piece(ImmutableList<Arg> args) {
    return emitter.emitAll(op.results().getFirst().name(), op.def(), args);
  }

  private ImmutableList<Value> byHeads(ImmutableList<Arg> args) {
    var pieces = new ArrayList<ImmutableList<Value>>();
    for (long head = 0; head < heads; head += mostHeads) {
      long end = Math.min(heads, head + mostHeads);
      pieces.add(piece(slices(args, HEAD, head, end, headsInGroup)));
    }
    var joined = ImmutableList.<Value>builder();
    for (int i = 0; i < op.results().size(); i++) {
      var column = column(pieces, i);
      joined.add(
          op.results().get(i).isTensor()
              ? emitter.emit(
                  Target.of(op.results().get(i).name()), "aten::cat", column, new Arg.Int(HEAD))
              : pieces.getFirst().get(i));
    }
    return joined.build();
  }

  /** The values that all pieces give for one result. */
  private static Arg.Seq column(List<ImmutableList<Value>> pieces, int result) {
    return new Arg.Seq(
        pieces.stream()
            .<Arg>map(piece -> new Arg.Ref(piece.get(result)))
            .collect(ImmutableList.toImmutableList()));
  }

  private void give(Value result, Arg.Seq pieces) {
    if (result.tensor().isContiguous()) {
      emitter.emitAs(result, "aten::cat", pieces, new Arg.Int(BATCH));
    } else {
      var whole =
          pieces.items().size() == 1
              ? pieces.items().getFirst()
              : new Arg.Ref(
                  emitter.emit(Target.of("joined"), "aten::cat", pieces, new Arg.Int(BATCH)));
      emitter.emitAs(result, "aten::clone", whole);
    }
  }

  /**
   * The arguments of a piece.
   *
   * @param inGroup how many of a dimension's queries there are for each of its keys
   */
  private ImmutableList<Arg> slices(
      ImmutableList<Arg> args, int dim, long from, long to, long inGroup) {
    var call = new OpCall(op.def(), args);
    var params = op.def().schema().params();
    var own = ImmutableList.<Arg>builder();
    for (int i = 0; i < args.size(); i++) {
      var param = params.get(i).name();
      own.add(
          switch (param) {
            case "key", "value" -> slice(call.value(param), dim, from, to);
            case "query", "out", "grad_out", "grad_out_", "logsumexp" ->
                slice(call.value(param), dim, from * inGroup, to * inGroup);
            default ->
                AttentionOps.bias(op.def()).filter(param::equals).filter(call::has).isPresent()
                    ? bias(call.value(param), dim, from * inGroup, to * inGroup)
                    : args.get(i);
          });
    }
    return own.build();
  }

  /** A bias may have fewer dimensions, and be of size 1 in them. */
  private Arg bias(Value bias, int dim, long from, long to) {
    int own = dim + bias.tensor().rank() - 4;
    return own < 0 || bias.tensor().size(own) == 1 ? new Arg.Ref(bias) : slice(bias, own, from, to);
  }

  private Arg slice(Value value, int dim, long from, long to) {
    return new Arg.Ref(
        from == 0 && to == value.tensor().size(dim)
            ? value
            : emitter.emit(
                Target.of("part"),
                "aten::slice.Tensor",
                new Arg.Ref(value),
                new Arg.Int(dim),
                new Arg.Int(from),
                new Arg.Int(to)));
  }
}
