package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Collective;

/** Which bytes a collective that only moves them takes from where to where. */
final class ByteMoves {

  /** A part of a tensor that goes from one place to another. */
  record Move(Address from, Address to, long bytes) {}

  private final CollectiveAddresses part;
  private final int tensor;
  private final ImmutableList.Builder<Move> moves = ImmutableList.builder();

  private ByteMoves(CollectiveAddresses part, int tensor) {
    this.part = part;
    this.tensor = tensor;
  }

  /** {@return what a rank copies, beginning with the next rank, so that no link carries all} */
  static ImmutableList<Move> of(CollectiveAddresses part, int tensor) {
    var moves = new ByteMoves(part, tensor);
    var collective = part.collective;
    boolean push = collective.spec().needsSymmetricResult();
    switch (collective.kind()) {
      case ALL_GATHER -> moves.gather(push);
      case ALL_TO_ALL -> moves.exchange(push);
      case BROADCAST -> moves.send(push);
      case ALL_REDUCE, REDUCE_SCATTER, CUSTOM ->
          throw new IllegalStateException(collective.kind() + " does more than copy");
    }
    return moves.moves.build();
  }

  private void add(Address from, Address to, long bytes) {
    if (bytes > 0 && !from.equals(to)) {
      moves.add(new Move(from, to, bytes));
    }
  }

  private void gather(boolean push) {
    var operand = part.operand(tensor);
    var result = part.result(tensor);
    long bytes = operand.type().bytes();
    for (int peer : part.ranksFrom(part.self + 1).toArray()) {
      add(
          push ? part.own(operand) : part.of(peer, operand),
          push
              ? part.of(peer, result).plus(part.self * bytes)
              : part.own(result).plus(peer * bytes),
          bytes);
    }
  }

  private void send(boolean push) {
    int root = part.collective.root();
    var operand = part.operand(tensor);
    var result = part.result(tensor);
    long bytes = operand.type().storageBytes();
    if (!push) {
      add(part.of(root, operand), part.own(result), bytes);
    } else if (part.self == root) {
      for (int peer : part.ranksFrom(part.self + 1).toArray()) {
        add(part.own(operand), part.of(peer, result), bytes);
      }
    }
  }

  private void exchange(boolean push) {
    var own = part.collective;
    var operand = part.operand(tensor);
    var result = part.result(tensor);
    for (int peer : part.ranksFrom(part.self + 1).toArray()) {
      var other = part.at(peer);
      if (push) {
        long from = start(own, own.sendRows(), peer, tensor);
        add(
            part.own(operand).plus(from),
            part.of(peer, result).plus(start(other, other.receiveRows(), part.self, tensor)),
            start(own, own.sendRows(), peer + 1, tensor) - from);
      } else {
        long from = start(other, other.sendRows(), part.self, tensor);
        add(
            part.of(peer, operand).plus(from),
            part.own(result).plus(start(own, own.receiveRows(), peer, tensor)),
            start(other, other.sendRows(), part.self + 1, tensor) - from);
      }
    }
  }

  /** {@return where a peer's rows begin, in bytes; without row counts, all have equally many} */
  static long start(Collective of, ImmutableLongArray rows, int peer, int tensor) {
    var type = of.operands().get(tensor).type();
    int size = of.group().members().length();
    long rowBytes = type.dtype().bytes();
    for (int i = 1; i < type.rank(); i++) {
      rowBytes *= type.size(i);
    }
    return rowBytes
        * (rows.isEmpty() ? type.size(0) / size * peer : rows.subArray(0, peer).stream().sum());
  }
}
