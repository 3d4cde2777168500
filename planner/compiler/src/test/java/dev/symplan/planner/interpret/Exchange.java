package dev.symplan.planner.interpret;

import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.plan.CollectivePlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The elements that one tensor of a collective brings from rank to rank.
 *
 * @param op as the rank has it whose result is asked for
 * @param reduction the text of the reduction; empty if nothing is reduced
 * @param root the rank that a broadcast comes from
 * @param members the ranks of its group, in order
 * @param index which of several tensors
 */
record Exchange(
    Op op, Kind kind, String reduction, int root, ImmutableIntArray members, int index) {

  /** A collective as an op of a graph has it. */
  static Exchange of(Op op, ImmutableIntArray members, int index) {
    var call = op.collective().orElseThrow();
    return new Exchange(
        op,
        call.kind(),
        call.reduceOp().map(ReduceOp::text).orElse(""),
        members.get(call.root().orElse(0)),
        members,
        index);
  }

  /** A collective as a plan has it. */
  static Exchange of(Op op, CollectivePlan plan, ImmutableIntArray members, int index) {
    return new Exchange(
        op,
        plan.kind(),
        plan.reduceOp().map(ReduceOp::text).orElse(""),
        plan.root() >= 0 && plan.root() < members.length() ? members.get(plan.root()) : -1,
        members,
        index);
  }

  /**
   * The elements that a rank brings.
   *
   * @param op as that rank has it
   */
  record Sent(Op op, List<Piece> pieces) {}

  /** A part of a result. */
  record Part(long begin, List<Piece> pieces) {}

  static ImmutableIntArray members(List<ProcessGroup> groups, Op op, int rank) {
    var name = op.collective().orElseThrow().group();
    var group = groups.stream().filter(g -> g.name().equals(name)).findFirst().orElseThrow();
    return group.members().get(group.partOf(rank).orElseThrow());
  }

  /** {@return a number for what a collective does to elements} */
  long key() {
    return Piece.mix(members.length(), reduction);
  }

  /**
   * {@return the part that this adds to the state that unknown ops read: the same for merged
   * collectives}
   */
  long weight() {
    return Piece.mix(key(), kind.text());
  }

  /**
   * {@return the parts of a rank's result that come from some operands}
   *
   * @param operands of all members where the elements are reduced; else of some
   */
  List<Part> result(int rank, Map<Integer, Sent> operands) {
    var ordered = new ArrayList<List<Piece>>();
    members.forEach(
        member -> {
          if (operands.containsKey(member)) {
            ordered.add(operands.get(member).pieces);
          }
        });
    int position = members.indexOf(rank);
    return switch (kind) {
      case ALL_REDUCE -> List.of(new Part(0, Piece.combine(key(), ordered)));
      case REDUCE_SCATTER -> {
        var places = places(operandType(op), call(op).sliceDims().operand(), position);
        var slices = ordered.stream().map(all -> converted(slice(all, places))).toList();
        yield List.of(new Part(0, Piece.combine(key(), slices)));
      }
      case ALL_GATHER -> gathered(operands);
      case ALL_TO_ALL ->
          call(op).sliceDims().equals(SliceDims.FIRST)
              ? exchanged(rank, operands)
              : exchangedAlong(rank, operands);
      case BROADCAST -> {
        Unsafe.require(operands.containsKey(root), "nobody is the root");
        yield List.of(new Part(0, operands.get(root).pieces));
      }
      case COLLECTIVE_PERMUTE -> {
        var source = permutation().sourceOf(position);
        if (source.isEmpty()) {
          var type = operandType(op);
          yield List.of(new Part(0, Piece.zeros(type.numel(), type.dtype().bytes())));
        }
        Unsafe.require(source.getAsInt() < members.length(), "the source is in no group");
        int member = members.get(source.getAsInt());
        Unsafe.require(operands.containsKey(member), "nobody is the source");
        yield List.of(new Part(0, operands.get(member).pieces));
      }
      case CUSTOM -> throw new IllegalStateException("hashed elsewhere");
    };
  }

  Permutation permutation() {
    return call(op).permutation();
  }

  private List<Part> gathered(Map<Integer, Sent> operands) {
    var parts = new ArrayList<Part>();
    var whole = op.results().get(index).tensor();
    operands.forEach(
        (member, sent) ->
            parts.addAll(
                parts(
                    sent.pieces,
                    places(whole, call(op).sliceDims().result(), members.indexOf(member)))));
    return parts;
  }

  private static CollectiveCall call(Op op) {
    return op.collective().orElseThrow();
  }

  private TensorType operandType(Op op) {
    return call(op).operands().get(index).tensor();
  }

  /** Bytes of a tensor. */
  private record Place(long begin, long bytes) {}

  /**
   * {@return where a member's equal share along a dimension lies, element by element of the
   * dimensions in front}
   */
  private List<Place> places(TensorType whole, int dim, int member) {
    if (whole.numel() == 0) {
      return List.of();
    }
    long inner = whole.dtype().bytes();
    for (int i = dim; i < whole.rank(); i++) {
      inner *= whole.size(i);
    }
    long own = inner / members.length();
    var places = new ArrayList<Place>();
    for (long begin = 0; begin < whole.bytes(); begin += inner) {
      places.add(new Place(begin + member * own, own));
    }
    return places;
  }

  private static List<Piece> slice(List<Piece> all, List<Place> places) {
    return places.stream()
        .flatMap(place -> Piece.part(all, place.begin(), place.bytes()).stream())
        .toList();
  }

  /** {@return elements of the operand as those of the result that are made of them} */
  private List<Piece> converted(List<Piece> slice) {
    return Piece.converted(
        slice, operandType(op).dtype(), op.results().get(index).tensor().dtype());
  }

  private static List<Part> parts(List<Piece> slice, List<Place> places) {
    var parts = new ArrayList<Part>();
    long from = 0;
    for (var place : places) {
      parts.add(new Part(place.begin(), Piece.part(slice, from, place.bytes())));
      from += place.bytes();
    }
    return parts;
  }

  /** Equal shares of all operands, along other dimensions than the first. */
  private List<Part> exchangedAlong(int rank, Map<Integer, Sent> operands) {
    var parts = new ArrayList<Part>();
    operands.forEach(
        (member, sent) -> {
          var dims = call(sent.op).sliceDims();
          var from = places(operandType(sent.op), dims.operand(), members.indexOf(rank));
          var to =
              places(
                  op.results().get(index).tensor(),
                  call(op).sliceDims().result(),
                  members.indexOf(member));
          parts.addAll(parts(slice(sent.pieces, from), to));
        });
    return parts;
  }

  private List<Part> exchanged(int rank, Map<Integer, Sent> operands) {
    long width = width(op);
    var received = op.collective().orElseThrow().outputSplits();
    int position = members.indexOf(rank);
    var parts = new ArrayList<Part>();
    long begin = 0;
    for (int s = 0; s < members.length(); s++) {
      long bytes = width * split(received, op.results().get(index).tensor(), s);
      var sent = operands.get(members.get(s));
      if (sent != null) {
        var sizes = sent.op.collective().orElseThrow().inputSplits();
        var operand = sent.op.collective().orElseThrow().operands().get(index).tensor();
        long from = 0;
        for (int i = 0; i < position; i++) {
          from += width * split(sizes, operand, i);
        }
        Unsafe.require(bytes == width * split(sizes, operand, position), "splits differ");
        parts.add(new Part(begin, Piece.part(sent.pieces, from, bytes)));
      }
      begin += bytes;
    }
    return parts;
  }

  private long split(ImmutableLongArray sizes, TensorType type, int i) {
    return sizes.isEmpty() ? type.size(0) / members.length() : sizes.get(i);
  }

  /** {@return the bytes of a row} */
  private long width(Op one) {
    var result = one.results().get(index).tensor();
    var operand = one.collective().orElseThrow().operands().get(index).tensor();
    var type = result.numel() > 0 ? result : operand;
    return type.numel() == 0 ? 0 : type.bytes() / type.size(0);
  }
}
