package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfer.Barrier;
import dev.symplan.codegen.Transfer.Clear;
import dev.symplan.codegen.Transfer.Copy;
import dev.symplan.codegen.Transfer.Endpoint;
import dev.symplan.codegen.Transfer.InTensor;
import dev.symplan.codegen.Transfer.Reduce;
import dev.symplan.codegen.Transfer.Rows;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.codegen.cuda.CollectiveKernels.Direction;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Launches;
import dev.symplan.planner.machine.Protocol;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Variants whose ranks reach into each other's tensors between two barriers: own kernels, and the
 * copy engines.
 */
final class PeerLowering {
  /** A part of a tensor that goes from one address to another. */
  private record Move(Address from, Address to, long bytes, RowsCode rows) {
    Move nothing() {
      return new Move(from, to, 0, rows);
    }

    KernelArgument source() {
      return new KernelArgument.Memory(from, rows.source().extent(bytes));
    }

    KernelArgument target() {
      return new KernelArgument.Memory(to, rows.target().extent(bytes));
    }

    /** {@return whether it can be done by so many bytes at once} */
    boolean dividesInto(int unit) {
      return from.offset() % unit == 0
          && to.offset() % unit == 0
          && bytes % unit == 0
          && rows.divideInto(unit);
    }
  }

  private final CollectiveAddresses part;
  private final int tensor;
  private final ImmutableList<Transfer> transfers;
  private final Edges edges;

  private PeerLowering(CollectiveAddresses part, int tensor) {
    this.part = part;
    this.tensor = tensor;
    this.transfers = part.transfers(tensor);
    this.edges = part.edges(tensor);
  }

  /** Copies by the copy engines, between kernels that only meet. */
  static void copies(CollectiveAddresses part) {
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      var lowering = new PeerLowering(part, tensor);
      for (var transfer : lowering.transfers) {
        if (transfer instanceof Barrier) {
          part.checkSize();
          part.launch(CollectiveKernels.barrier(part.size), 1, 32, part.meeting().build());
        }
        if (transfer instanceof Clear(var to, long bytes) && bytes > 0) {
          part.clear(part.at(tensor, to), bytes);
        }
        for (var move : lowering.moves(transfer)) {
          part.copy(move.from(), move.to(), move.bytes(), move.rows());
        }
      }
    }
  }

  /**
   * A kernel for as many tensors as possible, one after the other; only the first waits at the
   * start, and the last at the end.
   */
  static void kernels(CollectiveAddresses part) {
    part.checkSize();
    var together = new ArrayList<Combination>();
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      var lowering = new PeerLowering(part, tensor);
      var combination = lowering.combination();
      if (combination.isEmpty()) {
        lowering.move();
      } else {
        if (!together.isEmpty() && !combination.get().joins(together)) {
          launch(part, together);
          together.clear();
        }
        together.add(combination.get());
      }
    }
    if (!together.isEmpty()) {
      launch(part, together);
    }
  }

  /**
   * One tensor's elements of several addresses, combined in this order.
   *
   * @param bytes at each address that is read
   * @param type of the elements there
   * @param made of the combined ones
   * @param to all get them
   */
  record Combination(
      ImmutableList<Address> from,
      ImmutableList<Address> to,
      long bytes,
      RowsCode rows,
      DType type,
      DType made,
      Optional<ReduceOp> reduceOp,
      boolean inTurn,
      Edges edges) {

    private int words() {
      return Launches.words(from.size(), to.size());
    }

    /** {@return whether one kernel can do it after others} */
    boolean joins(List<Combination> others) {
      var last = others.getLast();
      return from.size() == last.from.size()
          && to.size() == last.to.size()
          && rows.equals(last.rows)
          && type == last.type
          && made == last.made
          && inTurn == last.inTurn
          && (others.size() + 1) * words() <= Launches.MAX_WORDS;
    }

    /** {@return whether all of it goes by 16 bytes} */
    boolean isVectorized() {
      return vectors() == bytes / Alignment.VECTOR && bytes % Alignment.VECTOR == 0;
    }

    private long vectors() {
      boolean aligned =
          from.stream().allMatch(Address::isVectorAligned)
              && to.stream().allMatch(Address::isVectorAligned)
              && rows.divideInto(Alignment.VECTOR, Alignment.VECTOR * widening());
      return aligned ? bytes / Alignment.VECTOR : 0;
    }

    KernelArgument written(Address address) {
      return new KernelArgument.Memory(address, rows.target().extent(bytes * widening()));
    }

    private int widening() {
      return made.bytes() / type.bytes();
    }

    void addAddresses(ImmutableList.Builder<KernelArgument> words) {
      long read = rows.source().extent(bytes);
      from.forEach(address -> words.add(new KernelArgument.Memory(address, read)));
      to.forEach(address -> words.add(written(address)));
    }

    private void add(ImmutableList.Builder<KernelArgument> words) {
      addAddresses(words);
      words.add(
          new KernelArgument.Number(vectors()), new KernelArgument.Number(bytes / type.bytes()));
    }
  }

  /**
   * {@return the kernel of a rank in a collective of one tensor that it reduces, or sends to all
   * alike}
   */
  static Combination combination(CollectiveAddresses part) {
    part.checkSize();
    return new PeerLowering(part, 0).combination().orElseThrow();
  }

  private static Direction direction(CollectiveAddresses part) {
    return part.collective.spec().protocol().writesOf() == Protocol.Whose.OWN
        ? Direction.PULL
        : Direction.PUSH;
  }

  /** The rank's work if it combines elements, or sends the same ones to all peers. */
  private Optional<Combination> combination() {
    boolean pairs = part.collective.kind() == Kind.COLLECTIVE_PERMUTE;
    for (var transfer : transfers) {
      if (transfer instanceof Reduce(var from, var to, long bytes)) {
        var type = part.operand(tensor).type().dtype().real();
        return Optional.of(
            combination(from, to, bytes, type, part.computedIn(), part.collective.reduceOp()));
      }
      if (transfer instanceof Copy(var from, var to, long bytes)
          && direction(part) == Direction.PUSH
          && !pairs
          && part.collective.spec().protocol().reads() != Protocol.Slice.THEIRS) {
        return Optional.of(
            combination(List.of(from), to, bytes, part.unit(), part.unit(), Optional.empty()));
      }
    }
    return Optional.empty();
  }

  private Combination combination(
      List<Endpoint> from,
      List<Endpoint> to,
      long bytes,
      DType type,
      DType made,
      Optional<ReduceOp> reduceOp) {
    var rows = new RowsCode(rows(from.getFirst()), rows(to.getFirst()));
    // Links are faster when they are read and written one after the other, not both at once.
    boolean inTurn =
        from.size() > 1
            && to.size() > 1
            && rows.equals(RowsCode.ONE)
            && mostBytes(part) / Alignment.VECTOR
                > (long) blocks(part, from.size()) * CollectiveAddresses.THREADS;
    return new Combination(
        addresses(from), addresses(to), bytes, rows, type, made, reduceOp, inTurn, edges);
  }

  /**
   * {@return the blocks of each kernel of a collective}
   *
   * <p>A slice may be shorter on the last ranks, but all must launch as many blocks. What only
   * stores to peers gains from more blocks than what also reads from them, and so does a kernel
   * that has other memory to read and write; on a rank where it is a kernel without those, too.
   */
  static int blocks(CollectiveAddresses part, int sources) {
    int limit =
        limit(
            sources == 1 || part.collective.epilogue().isFused() ? Direction.PUSH : Direction.PULL);
    return CollectiveAddresses.blocks(mostBytes(part) / Alignment.VECTOR, 1, limit);
  }

  private static int limit(Direction direction) {
    return switch (direction) {
      case PULL -> CollectiveAddresses.BLOCKS;
      case PUSH -> DeviceProgram.MAX_BLOCKS;
    };
  }

  /** {@return the most bytes of a tensor that a rank of the group moves at once} */
  private static long mostBytes(CollectiveAddresses part) {
    return IntStream.range(0, part.tensors()).mapToLong(part::mostBytes).max().orElseThrow();
  }

  private static void launch(CollectiveAddresses part, List<Combination> tensors) {
    var first = tensors.getFirst();
    var kernel =
        CollectiveKernels.combine(
            part.size,
            tensors.size(),
            first.from().size(),
            first.inTurn() ? 1 : first.to().size(),
            first.to().size(),
            unrolled(first.from().size()),
            first.type(),
            first.made(),
            first.reduceOp(),
            first.rows(),
            new Edges(first.edges().start(), tensors.getLast().edges().end()),
            direction(part));
    var words = part.meeting();
    tensors.forEach(tensor -> tensor.add(words));
    part.launch(
        kernel, blocks(part, first.from().size()), CollectiveAddresses.THREADS, words.build());
  }

  private ImmutableList<Address> addresses(List<Endpoint> ends) {
    return ends.stream().map(end -> part.at(tensor, end)).collect(ImmutableList.toImmutableList());
  }

  private static Rows rows(Endpoint end) {
    return end instanceof InTensor tensor ? tensor.rows() : Rows.ONE;
  }

  /** Vectors in flight in each thread: as many as fit into registers. */
  private static int unrolled(int sources) {
    return sources <= 4 ? 4 : sources <= 8 ? 2 : 1;
  }

  private ImmutableList<Move> moves(Transfer transfer) {
    var moves = ImmutableList.<Move>builder();
    if (transfer instanceof Copy(var source, var targets, long bytes) && bytes > 0) {
      var from = part.at(tensor, source);
      for (var end : targets) {
        var to = part.at(tensor, end);
        if (!to.equals(from)) {
          moves.add(new Move(from, to, bytes, new RowsCode(rows(source), rows(end))));
        }
      }
    }
    return moves.build();
  }

  /**
   * Several elements at once where rows of slices leave it at that; one run is copied in vectors.
   */
  private int unit(List<Move> moves) {
    int unit = part.unit().bytes();
    int wide = unit;
    while (!moves.getFirst().rows().equals(RowsCode.ONE) && wide < Long.BYTES) {
      int next = 2 * wide;
      if (!moves.stream().allMatch(move -> move.dividesInto(next))) {
        break;
      }
      wide = next;
    }
    return wide;
  }

  private void move() {
    var direction = direction(part);
    var all = transfers.stream().flatMap(transfer -> moves(transfer).stream()).toList();
    // Ranks that have nothing to move still meet the others.
    var own = part.own(part.result(tensor));
    var moves = all.isEmpty() ? List.of(new Move(own, own, 0, RowsCode.ONE)) : all;
    int pieces = reachesOne() ? 1 : part.size;
    // All slices of a tensor lie in the same rows.
    var rows = moves.getFirst().rows();
    int unit = unit(moves);
    var from = ImmutableList.<KernelArgument>builder();
    var to = ImmutableList.<KernelArgument>builder();
    var vectors = ImmutableList.<KernelArgument>builder();
    var units = ImmutableList.<KernelArgument>builder();
    for (int piece = 0; piece < pieces; piece++) {
      var move = piece < moves.size() ? moves.get(piece) : moves.getFirst().nothing();
      boolean aligned =
          move.from().isVectorAligned()
              && move.to().isVectorAligned()
              && rows.divideInto(Alignment.VECTOR);
      from.add(move.source());
      to.add(move.target());
      vectors.add(new KernelArgument.Number(aligned ? move.bytes() / Alignment.VECTOR : 0));
      units.add(new KernelArgument.Number(move.bytes() / unit));
    }
    // Parts of an all_to_all may differ from rank to rank, but all must launch as many blocks.
    long most =
        IntStream.range(0, part.size)
            .mapToLong(peer -> part.at(peer).operands().get(tensor).type().bytes())
            .max()
            .orElse(0);
    var cleared = ImmutableList.<KernelArgument>builder();
    boolean clears = addCleared(cleared, unit);
    part.launch(
        CollectiveKernels.move(part.size, pieces, unit, rows, edges, direction, clears),
        CollectiveAddresses.blocks(most / Alignment.VECTOR, pieces, limit(direction)),
        CollectiveAddresses.THREADS,
        part.meeting()
            .addAll(from.build())
            .addAll(to.build())
            .addAll(vectors.build())
            .addAll(units.build())
            .addAll(cleared.build())
            .build());
  }

  /** {@return whether a rank reads from one other at most, or stores to one at most} */
  private boolean reachesOne() {
    return switch (part.collective.kind()) {
      case BROADCAST, COLLECTIVE_PERMUTE -> true;
      case ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, CUSTOM -> false;
    };
  }

  /** {@return whether the rank fills its result with zeros, between the meetings as it copies} */
  private boolean addCleared(ImmutableList.Builder<KernelArgument> words, int unit) {
    for (var transfer : transfers) {
      if (transfer instanceof Clear(var end, long bytes)) {
        var to = part.at(tensor, end);
        words.add(
            new KernelArgument.Memory(to, bytes),
            new KernelArgument.Number(to.isVectorAligned() ? bytes / Alignment.VECTOR : 0),
            new KernelArgument.Number(bytes / unit));
        return true;
      }
    }
    return false;
  }
}
