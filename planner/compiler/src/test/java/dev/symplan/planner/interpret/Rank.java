package dev.symplan.planner.interpret;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
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

  /** By all elements of a tensor that an elementwise op made, those that it repeats. */
  private final Map<Seen, Few> few = new HashMap<>();

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
    if (!op.def().has(OpTrait.ELEMENTWISE)) {
      for (var value : op.operands()) {
        digest = Piece.mix(digest, content(value));
      }
      return digest;
    }
    long most = count(sizes(op));
    for (var value : op.operands()) {
      if (value.isTensor()) {
        var own = few(value);
        digest = Piece.mix(digest, Piece.hash(own.pieces()));
        // Where an op repeats elements, it counts along which dimensions.
        boolean repeats = count(own.sizes()) > 1 && count(own.sizes()) < most;
        digest = repeats ? Piece.mix(digest, own.sizes().hashCode()) : digest;
      } else {
        digest = Piece.mix(digest, scalar(value));
      }
    }
    return digest;
  }

  static long count(ImmutableList<Long> sizes) {
    return sizes.stream().reduce(1L, (a, b) -> a * b);
  }

  /**
   * {@return the elements of a tensor without those that repeat others}
   *
   * <p>An elementwise op gives the same if it is carried out on these, and its result repeated.
   */
  Few few(Value value) {
    var type = value.tensor();
    var sizes = type.sizes().toArray();
    for (int d = 0; d < sizes.length; d++) {
      sizes[d] = type.stride(d) == 0 && sizes[d] > 0 ? 1 : sizes[d];
    }
    var once =
        new TensorType(
            type.dtype(), ImmutableLongArray.copyOf(sizes), type.strides(), type.space());
    var pieces = place(value).read(once);
    return few.getOrDefault(new Seen(Piece.hash(pieces), dims(once)), new Few(pieces, dims(once)));
  }

  /** {@return the sizes of what an elementwise op gives if it repeats nothing, last one first} */
  ImmutableList<Long> sizes(Op op) {
    var sizes = ImmutableList.<Long>of();
    for (var value : op.operands()) {
      if (value.isTensor()) {
        sizes = broadcast(sizes, few(value).sizes());
      }
    }
    return sizes;
  }

  /** Says what a tensor repeats that an elementwise op has made. */
  void repeats(Value value, Few once) {
    if (count(once.sizes()) < value.tensor().numel()) {
      few.put(new Seen(content(value), dims(value.tensor())), once);
    }
  }

  /** The sizes from the last dimension on, without those of 1 before the first one. */
  private static ImmutableList<Long> dims(TensorType type) {
    int rank = type.rank();
    while (rank > 0 && type.size(type.rank() - rank) == 1) {
      rank--;
    }
    return type.sizes().subArray(type.rank() - rank, type.rank()).stream()
        .boxed()
        .collect(ImmutableList.toImmutableList())
        .reverse();
  }

  private static ImmutableList<Long> broadcast(ImmutableList<Long> a, ImmutableList<Long> b) {
    var sizes = ImmutableList.<Long>builder();
    for (int d = 0; d < Math.max(a.size(), b.size()); d++) {
      long own = d < a.size() ? a.get(d) : 1;
      sizes.add(own == 1 && d < b.size() ? b.get(d) : own);
    }
    return sizes.build();
  }

  /**
   * Elements that a tensor repeats.
   *
   * @param sizes from the last dimension on
   */
  record Few(List<Piece> pieces, ImmutableList<Long> sizes) {}

  /** All elements of a tensor. */
  private record Seen(long content, ImmutableList<Long> sizes) {}

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
