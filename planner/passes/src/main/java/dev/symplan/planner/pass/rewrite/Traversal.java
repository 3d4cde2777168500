package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.pass.analysis.Aliases;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The order in which a copy goes through the elements of a storage: nested loops.
 *
 * @param offset where it begins, in bytes
 * @param loops from the outermost on; none could be one with the next, and none has one round
 */
record Traversal(long offset, ImmutableList<Loop> loops) {

  /** So many rounds, and how many elements further each begins. */
  record Loop(long rounds, long stride) {}

  /** {@return a traversal with loops that are put together where two are one} */
  static Traversal of(long offset, List<Loop> loops) {
    var merged = new ArrayList<Loop>();
    for (var loop : loops) {
      if (loop.rounds() == 1) {
        continue;
      }
      if (!merged.isEmpty() && merged.getLast().stride() == loop.rounds() * loop.stride()) {
        long rounds = merged.removeLast().rounds() * loop.rounds();
        merged.add(new Loop(rounds, loop.stride()));
      } else {
        merged.add(loop);
      }
    }
    return new Traversal(offset, ImmutableList.copyOf(merged));
  }

  /**
   * {@return in which order an op goes through one storage, if it does nothing but copy elements of
   * it to a contiguous result}
   */
  static Optional<Traversal> of(Op op, Aliases aliases) {
    var name = op.def().name().toString();
    return switch (name) {
      case "aten::clone", "aten::contiguous", "aten::reshape" -> ofCopy(op, aliases);
      case "aten::cat", "aten::concat" -> ofPieces(op, 0, aliases);
      case "aten::stack" -> ofPieces(op, 1, aliases);
      default -> Optional.empty();
    };
  }

  private static boolean isContiguous(Op op) {
    return op.results().size() == 1
        && op.result().isTensor()
        && op.result().tensor().isContiguous();
  }

  private static Optional<Traversal> ofCopy(Op op, Aliases aliases) {
    if (!isContiguous(op) || !(op.arg("self") instanceof Arg.Ref(Value self))) {
      return Optional.empty();
    }
    return Optional.of(of(self, aliases));
  }

  /** {@return the order of a tensor's elements, row by row} */
  static Traversal of(Value value, Aliases aliases) {
    return of(aliases.offset(value), loops(value, 0, value.tensor().rank()));
  }

  private static List<Loop> loops(Value value, int from, int to) {
    var loops = new ArrayList<Loop>();
    for (int dim = from; dim < to; dim++) {
      loops.add(new Loop(value.tensor().size(dim), value.tensor().stride(dim)));
    }
    return loops;
  }

  /**
   * Of pieces that look alike and begin at equal distances.
   *
   * @param more dimensions of the result than of the pieces
   */
  private static Optional<Traversal> ofPieces(Op op, int more, Aliases aliases) {
    var pieces = op.args().getFirst().operands();
    if (!isContiguous(op) || pieces.size() < 2 || !(op.arg("dim") instanceof Arg.Int(long along))) {
      return Optional.empty();
    }
    var first = pieces.getFirst();
    int rank = first.tensor().rank();
    long bytes = first.tensor().dtype().bytes();
    long apart = aliases.offset(pieces.get(1)) - aliases.offset(first);
    for (int i = 0; i < pieces.size(); i++) {
      var piece = pieces.get(i);
      if (!piece.tensor().sizes().equals(first.tensor().sizes())
          || !piece.tensor().strides().equals(first.tensor().strides())
          || piece.tensor().dtype() != op.result().tensor().dtype()
          || aliases.id(piece) != aliases.id(first)
          || aliases.offset(piece) != aliases.offset(first) + i * apart) {
        return Optional.empty();
      }
    }
    if (apart % bytes != 0) {
      return Optional.empty();
    }
    int dim = OpCall.wrapDim(along, rank + more, "dim");
    var loops = new ArrayList<>(loops(first, 0, dim));
    loops.add(new Loop(pieces.size(), apart / bytes));
    loops.addAll(loops(first, dim, rank));
    return Optional.of(of(aliases.offset(first), loops));
  }
}
