package dev.symplan.planner.interpret;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** The effects of ops with a rule: they copy what they copy, and hash everything else. */
final class KnownOps {
  private static final long MAX_PARTS = 1 << 16;
  private static final int SAMPLES = 4;

  private KnownOps() {}

  /** Carries out an op that is not a collective. Its results have their places. */
  static void carryOut(Op op, Rank rank, Random order) {
    switch (op.def().name().toString()) {
      // The copy that it waits for has written all.
      case "symplan::await_copy" -> {}
      case "symplan::setup_end" -> {}
      case "symplan::stage",
          "symplan::offload",
          "symplan::reload",
          "symplan::fetch",
          "aten::clone" ->
          copy(op, op.operands().getFirst(), op.result(), rank);
      case "symplan::offload_" -> copy(op, op.operands().getFirst(), op.operands().get(1), rank);
      case "aten::copy_" -> copy(op, op.operands().get(1), op.operands().getFirst(), rank);
      case "aten::contiguous", "aten::reshape" -> copyUnlessView(op, rank);
      case "prims::convert_element_type", "aten::_to_copy" -> convert(op, rank);
      case "aten::cat" -> cat(op, rank, order);
      case "aten::mm", "aten::addmm", "aten::linear" -> product(op, rank);
      default -> hash(op, rank);
    }
  }

  private static void copy(Op op, Value from, Value to, Rank rank) {
    if (from.tensor().dtype() == to.tensor().dtype()
        && from.tensor().sizes().equals(to.tensor().sizes())) {
      rank.place(to).write(to.tensor(), rank.place(from).read(from.tensor()));
    } else {
      hash(op, rank);
    }
  }

  /** The elements stay in their order, whatever the sizes are. */
  private static void copyUnlessView(Op op, Rank rank) {
    var from = op.operands().getFirst();
    var to = op.result();
    if (op.infer().getFirst().view().isEmpty()) {
      rank.place(to).write(to.tensor(), rank.place(from).read(from.tensor()));
    }
  }

  /** Each element by itself, so that elements can be converted before or after they move. */
  private static void convert(Op op, Rank rank) {
    var from = op.operands().getFirst();
    var to = op.result();
    var few = rank.few(from);
    rank.place(to)
        .write(
            to.tensor(),
            Piece.converted(
                rank.place(from).read(from.tensor()), from.tensor().dtype(), to.tensor().dtype()));
    rank.repeats(
        to,
        new Rank.Few(
            Piece.converted(few.pieces(), from.tensor().dtype(), to.tensor().dtype()),
            few.sizes()));
  }

  static void hash(Op op, Rank rank) {
    long digest = rank.digest(op);
    boolean elementwise =
        op.def().has(OpTrait.ELEMENTWISE) && op.results().size() == 1 && op.result().isTensor();
    var sizes = elementwise ? rank.sizes(op) : ImmutableList.<Long>of();
    if (op.def().has(OpTrait.SIDE_EFFECT)) {
      digest = Piece.mix(digest, rank.effects);
      rank.effects = Piece.mix(rank.effects, digest);
    }
    var written = op.written();
    for (int i = 0; i < written.size(); i++) {
      var value = written.get(i);
      rank.place(value).fill(value.tensor(), Piece.mix(digest, 1_000 + i));
    }
    var inferred = op.infer();
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      if (!result.isTensor()) {
        rank.setScalar(result, Piece.mix(digest, r));
      } else if (inferred.get(r).view().isEmpty()) {
        rank.place(result).fill(result.tensor(), Piece.mix(digest, r));
      }
    }
    if (elementwise) {
      long bytes = Rank.count(sizes) * op.result().tensor().dtype().bytes();
      rank.repeats(
          op.result(), new Rank.Few(List.of(new Piece(Piece.mix(digest, 0), 0, bytes)), sizes));
    }
  }

  /** {@return whether a concatenation copies each piece as a whole to its part of the result} */
  static boolean copiesPieces(Op op) {
    return op.def().has(OpTrait.CONCATENATION)
        && op.result().tensor().isContiguous()
        && outer(op) == 1
        && isUniform(op);
  }

  private static boolean isUniform(Op op) {
    return op.operands().stream()
        .allMatch(piece -> piece.tensor().dtype() == op.result().tensor().dtype());
  }

  private static long outer(Op op) {
    var type = op.result().tensor();
    long dim = op.arg("dim") instanceof Arg.Int(long given) ? given : 0;
    long outer = 1;
    for (int d = 0; d < (dim < 0 ? dim + type.rank() : dim); d++) {
      outer *= type.size(d);
    }
    return outer;
  }

  /** {@return whether a concatenation has several rows of each piece, side by side} */
  static boolean joinsRows(Op op) {
    return op.def().has(OpTrait.CONCATENATION)
        && op.result().tensor().isContiguous()
        && outer(op) > 1
        && isUniform(op);
  }

  /**
   * Writes something wrong into a result whose rows several pieces have, but for the rows of those
   * pieces that lie there.
   */
  static void spoilBetween(Op op, Rank rank, long token) {
    long outer = outer(op);
    var whole = rank.place(op.result());
    long pitch = op.result().tensor().bytes() / outer;
    var kept = new ArrayList<Value>();
    var contents = new ArrayList<List<Piece>>();
    long offset = 0;
    for (var piece : op.operands()) {
      long row = piece.tensor().bytes() / outer;
      if (piece.tensor().isContiguous()
          && rank.place(piece).isRows(whole, offset, row, pitch)
          && Collections.frequency(op.operands(), piece) == 1) {
        kept.add(piece);
        contents.add(rank.place(piece).read(piece.tensor()));
      }
      offset += row;
    }
    whole.fill(op.result().tensor(), token);
    for (int i = 0; i < kept.size(); i++) {
      rank.place(kept.get(i)).write(kept.get(i).tensor(), contents.get(i));
    }
  }

  private static void cat(Op op, Rank rank, Random order) {
    var type = op.result().tensor();
    if (copiesPieces(op)) {
      copyPieces(op, rank, order);
      return;
    }
    long outer = outer(op);
    if (!isUniform(op) || outer == 0 || outer * op.operands().size() > MAX_PARTS) {
      hash(op, rank);
      return;
    }
    var cursors = new ArrayList<Piece.Cursor>();
    op.operands().forEach(v -> cursors.add(new Piece.Cursor(rank.place(v).read(v.tensor()))));
    var all = new ArrayList<Piece>();
    for (long i = 0; i < outer; i++) {
      for (int p = 0; p < cursors.size(); p++) {
        all.addAll(cursors.get(p).take(op.operands().get(p).tensor().bytes() / outer));
      }
    }
    rank.place(op.result()).write(type, all);
  }

  /** In any order, each piece being read when it is written: some may lie in the result already. */
  private static void copyPieces(Op op, Rank rank, Random order) {
    var whole = rank.place(op.result());
    var offsets = new ArrayList<Long>();
    var indices = new ArrayList<Integer>();
    long next = 0;
    for (int i = 0; i < op.operands().size(); i++) {
      offsets.add(next);
      indices.add(i);
      next += op.operands().get(i).tensor().bytes();
    }
    Collections.shuffle(indices, order);
    for (int i : indices) {
      var piece = op.operands().get(i);
      var from = rank.place(piece);
      var to = whole.at(whole.begin + offsets.get(i));
      var target = piece.tensor().contiguous();
      Unsafe.require(
          piece.tensor().bytes() == 0
              || !from.overlaps(piece.tensor(), to, target)
              || (from.isAt(to) && piece.tensor().isContiguous()),
          "%s is copied over itself",
          piece.name());
      to.write(target, from.read(piece.tensor()));
    }
  }

  /** Rows of a product do not depend on each other, so that it may be computed in pieces. */
  private static void product(Op op, Rank rank) {
    var name = op.def().name().name();
    var left =
        op.call().value(name.equals("mm") ? "self" : name.equals("addmm") ? "mat1" : "input");
    var result = op.result().tensor();
    if (result.numel() == 0 || left.tensor().numel() == 0) {
      hash(op, rank);
      return;
    }
    long key = Rank.key(op);
    for (var value : op.operands()) {
      key = Piece.mix(key, value.equals(left) ? 0 : rank.content(value));
    }
    var type = left.tensor();
    long inner = type.size(type.rank() - 1);
    long rows = type.numel() / inner;
    long width = result.bytes() / rows;
    boolean whole = type.stride(type.rank() - 1) == 1 || inner == 1;
    var cursor = new Piece.Cursor(whole ? rank.place(left).read(type) : List.of());
    var made = new ArrayList<Piece>();
    for (long row = 0; row < rows; row++) {
      Piece.append(
          made,
          whole
              ? row(cursor.take(inner * type.dtype().bytes()), key, width)
              : new Piece(
                  Piece.mix(key, sampled(rank.place(left), type, row * inner, inner)), 0, width));
    }
    rank.place(op.result()).write(result, made);
  }

  /** A row of a product. Rows that were computed one after the other give rows of one piece. */
  private static Piece row(List<Piece> pieces, long key, long width) {
    if (pieces.size() > 1) {
      return new Piece(Piece.mix(key, Piece.hash(pieces)), 0, width);
    }
    var piece = pieces.getFirst();
    long token = Piece.mix(Piece.mix(key, piece.token()), piece.length());
    return new Piece(
        Piece.mix(token, Math.floorMod(piece.from(), piece.length())),
        Math.floorDiv(piece.from(), piece.length()) * width,
        width);
  }

  private static long sampled(Place place, TensorType type, long first, long count) {
    long hash = count;
    for (int s = 0; s < SAMPLES; s++) {
      hash = Piece.mix(hash, Piece.hash(place.element(type, first + (count - 1) * s / SAMPLES)));
    }
    return hash;
  }
}
