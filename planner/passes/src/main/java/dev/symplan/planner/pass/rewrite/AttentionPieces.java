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
 * need too much workspace for all of them. Where even the heads of queries that share one of keys
 * are too many, each piece has some of them, and gives a part of the gradients of keys and values.
 */
final class AttentionPieces {
  private static final int BATCH = 0;
  private static final int HEAD = 1;

  /** The result that has a row for each row of queries; the others have one for each key. */
  private static final int OF_QUERY = 0;

  private final OpEmitter emitter;
  private final Op op;
  private final long batches;
  private final long heads;
  private final long headsInGroup;

  /** How many batches a piece may have; 0 if one is too large. */
  private final long mostBatches;

  /** How many heads of keys a piece may have; 0 if one is too large. */
  private final long mostHeads;

  /** How many heads of queries that share one of keys a piece may have; 0 if one is too large. */
  private final long mostInGroup;

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
    var value = op.call().tensor("value");
    this.mostHeads = LibraryAttention.gradientHeads(headsInGroup, query, key, value, most);
    this.mostBatches = mostHeads / heads;
    this.mostInGroup = LibraryAttention.gradientGroup(query, key, value, most);
  }

  /** {@return whether all of it may be one piece} */
  boolean isOne() {
    return !AttentionOps.isBackward(op.def()) || mostBatches >= batches;
  }

  /** {@return whether it can be divided into pieces that are small enough} */
  boolean exist() {
    return isOne() || mostInGroup > 0;
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
      long end = Math.min(batches, batch + together);
      var own = slices(args, BATCH, batch, end, batch, end);
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
    long parts = mostHeads > 0 ? 1 : Math.ceilDiv(headsInGroup, mostInGroup);
    for (long head = 0; head < heads; head += Math.max(1, mostHeads)) {
      long end = Math.min(heads, head + Math.max(1, mostHeads));
      long first = head * headsInGroup;
      if (parts == 1) {
        pieces.add(piece(slices(args, HEAD, head, end, first, end * headsInGroup)));
      } else {
        for (long from = 0; from < headsInGroup; from += mostInGroup) {
          long to = Math.min(headsInGroup, from + mostInGroup);
          pieces.add(piece(slices(args, HEAD, head, end, first + from, first + to)));
        }
      }
    }
    var joined = ImmutableList.<Value>builder();
    for (int i = 0; i < op.results().size(); i++) {
      joined.add(
          op.results().get(i).isTensor()
              ? joined(i, column(pieces, i), parts)
              : pieces.getFirst().get(i));
    }
    return joined.build();
  }

  /** What the pieces of all heads give together for one result. */
  private Value joined(int result, Arg.Seq pieces, long parts) {
    var target = Target.of(op.results().get(result).name());
    var whole = emitter.emit(target, "aten::cat", pieces, new Arg.Int(HEAD));
    if (parts == 1 || result == OF_QUERY) {
      return whole;
    }
    var type = whole.tensor();
    var sizes = Arg.Seq.of(type.size(0), heads, parts, type.size(2), type.size(3));
    var apart = emitter.emit(target, "aten::view", new Arg.Ref(whole), sizes);
    return emitter.emit(target, "aten::sum.dim_IntList", new Arg.Ref(apart), Arg.Seq.of(2));
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
   * @param from which keys it has in a dimension, and to which
   * @param first which queries it has in that dimension, and to which
   */
  private ImmutableList<Arg> slices(
      ImmutableList<Arg> args, int dim, long from, long to, long first, long end) {
    var call = new OpCall(op.def(), args);
    var params = op.def().schema().params();
    var own = ImmutableList.<Arg>builder();
    for (int i = 0; i < args.size(); i++) {
      var param = params.get(i).name();
      own.add(
          switch (param) {
            case "key", "value" -> slice(call.value(param), dim, from, to);
            case "query", "out", "grad_out", "grad_out_", "logsumexp" ->
                slice(call.value(param), dim, first, end);
            default ->
                AttentionOps.bias(op.def()).filter(param::equals).filter(call::has).isPresent()
                    ? bias(call.value(param), dim, first, end)
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
