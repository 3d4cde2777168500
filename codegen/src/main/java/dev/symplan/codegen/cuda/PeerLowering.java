package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.codegen.cuda.ByteMoves.Move;
import dev.symplan.codegen.cuda.CollectiveKernels.Direction;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Variant;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Variants whose ranks reach into each other's tensors between two meetings: own kernels, and the
 * copy engines.
 */
final class PeerLowering {
  private final CollectiveAddresses part;

  private PeerLowering(CollectiveAddresses part) {
    this.part = part;
  }

  /** Copies by the copy engines, between two kernels that only meet. */
  static void copyEngine(CollectiveAddresses part) {
    var collective = part.collective;
    if (collective.startBarrier()) {
      barrier(part);
    }
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      for (var move : ByteMoves.of(part, tensor)) {
        part.copy(move.from(), move.to(), move.bytes());
      }
    }
    if (collective.endBarrier()) {
      barrier(part);
    }
  }

  private static void barrier(CollectiveAddresses part) {
    part.checkSize();
    part.launch(CollectiveKernels.barrier(part.size), 1, 32, part.meeting().build());
  }

  /** A kernel for each tensor; only the first waits at the start, and the last at the end. */
  static void kernels(CollectiveAddresses part) {
    part.checkSize();
    var lowering = new PeerLowering(part);
    var collective = part.collective;
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      var edges = part.edges(tensor);
      switch (collective.kind()) {
        case ALL_REDUCE -> lowering.allReduce(tensor, edges);
        case ALL_GATHER -> lowering.allGather(tensor, edges);
        case REDUCE_SCATTER -> lowering.reduceScatter(tensor, edges);
        case BROADCAST -> lowering.broadcast(tensor, edges);
        case ALL_TO_ALL -> lowering.move(tensor, edges);
        case CUSTOM -> throw new IllegalStateException("a custom op is a local instruction");
      }
    }
  }

  private boolean isTwoShot() {
    return part.collective.variant() == Variant.TWO_SHOT;
  }

  private void allReduce(int tensor, Edges edges) {
    long elements = part.operand(tensor).type().numel();
    var dtype = part.dtype();
    if (!isTwoShot()) {
      var to = ImmutableList.of(part.own(part.result(tensor)));
      reduce(tensor, 0, elements, elements, to, edges, Direction.PULL);
      return;
    }
    long from = CollectiveAddresses.sliceStart(elements, dtype, part.size, part.self);
    long end = CollectiveAddresses.sliceStart(elements, dtype, part.size, part.self + 1);
    long most = CollectiveAddresses.sliceStart(elements, dtype, part.size, 1);
    var to =
        part.ranksFrom(part.self)
            .mapToObj(peer -> part.of(peer, part.result(tensor)).plus(from * dtype.bytes()))
            .collect(ImmutableList.toImmutableList());
    reduce(tensor, from, end - from, most, to, edges, Direction.PUSH);
  }

  private void reduceScatter(int tensor, Edges edges) {
    long share = part.result(tensor).type().numel();
    var to = ImmutableList.of(part.own(part.result(tensor)));
    reduce(tensor, part.self * share, share, share, to, edges, Direction.PULL);
  }

  /**
   * @param most elements of the rank that has most
   */
  private void reduce(
      int tensor,
      long first,
      long elements,
      long most,
      ImmutableList<Address> to,
      Edges edges,
      Direction direction) {
    var from = part.ofAll(part.operand(tensor), first * part.dtype().bytes());
    int parts = part.partsOfElement();
    combine(
        from,
        to,
        elements * parts,
        most * parts,
        part.computedIn(),
        part.collective.reduceOp(),
        edges,
        direction);
  }

  private void allGather(int tensor, Edges edges) {
    long bytes = part.operand(tensor).type().bytes();
    if (part.collective.variant() == Variant.ONE_SHOT) {
      move(tensor, edges);
      return;
    }
    var to =
        part.ranksFrom(part.self + 1)
            .mapToObj(peer -> part.of(peer, part.result(tensor)).plus(part.self * bytes))
            .collect(ImmutableList.toImmutableList());
    replicate(part.own(part.operand(tensor)), to, bytes, bytes, edges);
  }

  /**
   * In two shots, each rank but the root takes a slice from there and stores it to all of them, so
   * that every byte leaves the root once. The root's own result is a copy in its memory.
   */
  private void broadcast(int tensor, Edges edges) {
    if (!isTwoShot()) {
      move(tensor, edges);
      return;
    }
    int root = part.collective.root();
    var operand = part.operand(tensor);
    var result = part.result(tensor);
    long bytes = operand.type().storageBytes();
    long slice = CollectiveAddresses.sliceStart(bytes, DType.U8, part.size - 1, 1);
    if (part.self == root) {
      replicate(part.own(operand), ImmutableList.of(part.own(result)), bytes, slice, edges);
      return;
    }
    int mine = part.self < root ? part.self : part.self - 1;
    long from = CollectiveAddresses.sliceStart(bytes, DType.U8, part.size - 1, mine);
    long end = CollectiveAddresses.sliceStart(bytes, DType.U8, part.size - 1, mine + 1);
    var to =
        part.ranksFrom(part.self + 1)
            .filter(peer -> peer != root)
            .mapToObj(peer -> part.of(peer, result).plus(from))
            .collect(ImmutableList.toImmutableList());
    replicate(part.of(root, operand).plus(from), to, end - from, slice, edges);
  }

  /** Copies one stretch to several places; {@code most} bytes on the rank that has most. */
  private void replicate(
      Address from, ImmutableList<Address> to, long bytes, long most, Edges edges) {
    var unit = part.unit();
    combine(
        ImmutableList.of(from),
        to,
        bytes / unit.bytes(),
        most / unit.bytes(),
        unit,
        Optional.empty(),
        edges,
        Direction.PUSH);
  }

  private void combine(
      ImmutableList<Address> from,
      ImmutableList<Address> to,
      long elements,
      long most,
      DType type,
      Optional<ReduceOp> reduceOp,
      Edges edges,
      Direction direction) {
    boolean aligned =
        from.stream().allMatch(Address::isVectorAligned)
            && to.stream().allMatch(Address::isVectorAligned);
    long vectors = aligned ? elements * type.bytes() / Alignment.VECTOR : 0;
    // A slice may be shorter on the last ranks, but all must launch as many blocks.
    // What only stores to peers gains from more blocks than what also reads from them.
    int limit = from.size() == 1 ? DeviceProgram.MAX_BLOCKS : CollectiveAddresses.BLOCKS;
    long mostVectors = most * type.bytes() / Alignment.VECTOR;
    int blocks = CollectiveAddresses.blocks(mostVectors, 1, limit);
    // Links are faster when they are read and written one after the other, not both at once.
    boolean inTurn = from.size() > 1 && mostVectors > (long) blocks * CollectiveAddresses.THREADS;
    var kernel =
        CollectiveKernels.combine(
            part.size,
            from.size(),
            inTurn ? 1 : to.size(),
            to.size(),
            unrolled(from.size()),
            type,
            reduceOp,
            edges,
            direction);
    var words = part.meeting();
    from.forEach(address -> words.add(new KernelArgument.Memory(address, elements * type.bytes())));
    to.forEach(address -> words.add(new KernelArgument.Memory(address, elements * type.bytes())));
    words.add(new KernelArgument.Number(vectors), new KernelArgument.Number(elements));
    part.launch(kernel, blocks, CollectiveAddresses.THREADS, words.build());
  }

  /** Vectors in flight in each thread: as many as fit into registers. */
  private static int unrolled(int sources) {
    return sources <= 4 ? 4 : sources <= 8 ? 2 : 1;
  }

  private void move(int tensor, Edges edges) {
    var collective = part.collective;
    var all = ByteMoves.of(part, tensor);
    // Ranks that have nothing to move still meet the others.
    var own = part.own(part.result(tensor));
    var moves = all.isEmpty() ? ImmutableList.of(new Move(own, own, 0)) : all;
    int pieces = collective.kind() == Kind.BROADCAST ? 1 : part.size;
    var unit = part.unit();
    var from = ImmutableList.<KernelArgument>builder();
    var to = ImmutableList.<KernelArgument>builder();
    var vectors = ImmutableList.<KernelArgument>builder();
    var units = ImmutableList.<KernelArgument>builder();
    for (int piece = 0; piece < pieces; piece++) {
      var move =
          piece < moves.size()
              ? moves.get(piece)
              : new Move(moves.getFirst().from(), moves.getFirst().to(), 0);
      boolean aligned = move.from().isVectorAligned() && move.to().isVectorAligned();
      from.add(new KernelArgument.Memory(move.from(), move.bytes()));
      to.add(new KernelArgument.Memory(move.to(), move.bytes()));
      vectors.add(new KernelArgument.Number(aligned ? move.bytes() / Alignment.VECTOR : 0));
      units.add(new KernelArgument.Number(move.bytes() / unit.bytes()));
    }
    var direction = collective.spec().needsSymmetricResult() ? Direction.PUSH : Direction.PULL;
    // Parts of an all_to_all may differ from rank to rank, but all must launch as many blocks.
    long most =
        IntStream.range(0, part.size)
            .mapToLong(peer -> part.at(peer).operands().get(tensor).type().bytes())
            .max()
            .orElse(0);
    part.launch(
        CollectiveKernels.move(part.size, pieces, unit.bytes(), edges, direction),
        CollectiveAddresses.blocks(most / Alignment.VECTOR, pieces, CollectiveAddresses.BLOCKS),
        CollectiveAddresses.THREADS,
        part.meeting()
            .addAll(from.build())
            .addAll(to.build())
            .addAll(vectors.build())
            .addAll(units.build())
            .build());
  }
}
