package dev.symplan.planner.interpret;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** One rank that executes a graph or a plan. */
abstract class Rank {
  final int number;

  /** Traces that ops with an effect, in their order, have left outside their arguments. */
  long effects;

  /** The collectives up to now, in any order and in any pieces. */
  long met;

  /** Memory that ops have taken for their work: nothing is said of what it holds afterwards. */
  final Set<Bytes> scratch = Collections.newSetFromMap(new IdentityHashMap<>());

  private final Map<Integer, Long> numbers = new HashMap<>();

  Rank(int number) {
    this.number = number;
  }

  /**
   * Counts a tensor of a collective. What the compiler gathers again leaves nothing behind but its
   * result, which is compared where it is read.
   */
  void meet(Op op, long number) {
    boolean again = op.results().stream().anyMatch(result -> result.name().endsWith("_again"));
    met += again ? 0 : number;
  }

  /** {@return where a tensor is} */
  abstract Place place(Value value);

  /** Says that an op gave a result in other memory than its own. */
  abstract void put(Value result, Place place);

  /** {@return the meaning of a value that is not a tensor} */
  long scalar(Value value) {
    return numbers.getOrDefault(value.id(), Piece.mix(1, value.name()));
  }

  void setScalar(Value value, long token) {
    numbers.put(value.id(), token);
  }

  /** {@return a number for what an op does, whatever its operands are called} */
  static long key(Op op) {
    long key = Piece.mix(3, op.def().name().toString());
    for (var arg : op.args()) {
      key = Piece.mix(key, text(arg));
    }
    return key;
  }

  private static String text(Arg arg) {
    return switch (arg) {
      case Arg.Ref _ -> "%";
      case Arg.Seq(var items) ->
          items.stream().map(Rank::text).collect(Collectors.joining(", ", "[", "]"));
      case Arg.Literal literal -> literal.text();
    };
  }

  /** {@return a number for what an op does and reads} */
  long digest(Op op) {
    long digest = key(op);
    for (var value : op.operands()) {
      digest = Piece.mix(digest, content(value));
    }
    return digest;
  }

  /** {@return a number for a value, whatever its layout} */
  long content(Value value) {
    return value.isTensor() ? Piece.hash(place(value).read(value.tensor())) : scalar(value);
  }

  /** Fills an input with what the caller brings. */
  void bring(Value input, int index) {
    long token = Piece.mix(Piece.mix(5, number), index);
    if (input.isTensor()) {
      place(input).fill(input.tensor(), token);
    } else {
      // Ranks have the same sizes.
      setScalar(input, Piece.mix(7, index));
    }
  }
}
