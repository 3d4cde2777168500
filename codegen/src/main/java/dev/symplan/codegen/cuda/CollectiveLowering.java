package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.CollectiveKernels.Direction;
import dev.symplan.codegen.cuda.DeviceStep.NcclCall;
import dev.symplan.codegen.cuda.DeviceStep.NcclFunction;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Arena;
import dev.symplan.planner.Stream;
import dev.symplan.planner.Variant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * One rank's part of a collective as launches, copies and calls of NCCL: which bytes go from where
 * to where is what the host backend's {@code Transfer} does too.
 */
final class CollectiveLowering {
  private static final int THREADS = 512;

  /** One place for each stream and set of ranks: what meets there comes one after the other. */
  record Place(Stream stream, ImmutableIntArray members) {}

  /** A part of a tensor that goes from one place to another. */
  private record Move(Address from, Address to, long bytes) {}

  private final Map<Place, Integer> places = new LinkedHashMap<>();
  private final List<Map<Integer, Collective>> byIndex = new ArrayList<>();

  CollectiveLowering(Executable executable) {
    for (var program : executable.ranks()) {
      Map<Integer, Collective> own = new LinkedHashMap<>();
      for (var instruction : program.instructions()) {
        if (instruction instanceof Collective collective) {
          own.put(collective.group().index(), collective);
          var place = new Place(collective.stream(), collective.group().members());
          places.putIfAbsent(place, places.size());
        }
      }
      byIndex.add(own);
    }
  }

  int places() {
    return places.size();
  }

  /**
   * {@return what a rank does for a collective}
   *
   * @throws UnsupportedOnGpu when the variant or the elements cannot be had
   */
  ImmutableList<DeviceStep> lower(int rank, Collective collective) {
    return new Part(rank, collective).steps();
  }

  private final class Part {
    private final int rank;
    private final Collective collective;
    private final int self;
    private final int size;
    private final int place;
    private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

    /** The tensor that is worked on, of several where the collective is coalesced. */
    private int tensor;

    Part(int rank, Collective collective) {
      this.rank = rank;
      this.collective = collective;
      this.self = collective.group().self();
      this.size = collective.group().members().length();
      this.place =
          Objects.requireNonNull(
              places.get(new Place(collective.stream(), collective.group().members())));
    }

    ImmutableList<DeviceStep> steps() {
      switch (collective.variant()) {
        case LOCAL -> local();
        case NCCL -> nccl(false);
        case NCCL_SYMM -> nccl(true);
        case COPY_ENGINE -> copyEngine();
        case ONE_SHOT, TWO_SHOT, PUSH -> own();
        case MULTIMEM ->
            throw unsupported("variant multimem, whose NVLink multicast is not used here yet,");
        case CUSTOM -> throw unsupported("a custom collective");
      }
      return steps.build();
    }

    private UnsupportedOnGpu unsupported(String what) {
      return new UnsupportedOnGpu(what, collective.name(), collective.span());
    }

    private TensorRef operand() {
      return collective.operands().get(tensor);
    }

    private TensorRef result() {
      return collective.results().get(tensor);
    }

    private int rankOf(int peer) {
      return collective.group().members().get(peer);
    }

    private Collective at(int peer) {
      return Objects.requireNonNull(byIndex.get(rankOf(peer)).get(collective.group().index()));
    }

    /** A peer's symmetric memory at the offset that this rank knows: it is the same there. */
    private Address of(int peer, TensorRef ref) {
      if (peer != self && ref.arena() != Arena.SYMMETRIC) {
        throw new IllegalStateException(
            "rank %d cannot reach %s of rank %d: it is not in symmetric memory"
                .formatted(rank, ref, rankOf(peer)));
      }
      return Address.of(rankOf(peer), ref);
    }

    private void local() {
      for (tensor = 0; tensor < collective.operands().size(); tensor++) {
        var from = of(self, operand());
        var to = of(self, result());
        if (!from.equals(to) && operand().type().storageBytes() > 0) {
          steps.add(
              new DeviceStep.Copy(
                  collective.stream(),
                  from,
                  to,
                  operand().type().storageBytes(),
                  collective.name()));
        }
      }
    }

    private void copyEngine() {
      if (collective.startBarrier()) {
        steps.add(barrier());
      }
      for (tensor = 0; tensor < collective.operands().size(); tensor++) {
        for (var move : moves()) {
          steps.add(
              new DeviceStep.Copy(
                  collective.stream(), move.from(), move.to(), move.bytes(), collective.name()));
        }
      }
      if (collective.endBarrier()) {
        steps.add(barrier());
      }
    }

    private DeviceStep barrier() {
      checkSize();
      var kernel = CollectiveKernels.barrier(size);
      return new DeviceStep.Launch(
          collective.stream(), kernel, 1, 32, meeting().build(), collective.name());
    }

    private void checkSize() {
      if (size > DeviceProgram.MAX_RANKS) {
        throw unsupported("a generated kernel between " + size + " ranks");
      }
    }

    /** A kernel for each tensor; only the first waits at the start, and the last at the end. */
    private void own() {
      checkSize();
      int tensors = collective.operands().size();
      for (tensor = 0; tensor < tensors; tensor++) {
        boolean start = collective.startBarrier() && tensor == 0;
        boolean end = collective.endBarrier() && tensor == tensors - 1;
        switch (collective.kind()) {
          case ALL_REDUCE -> allReduce(start, end);
          case ALL_GATHER -> allGather(start, end);
          case REDUCE_SCATTER -> reduceScatter(start, end);
          case ALL_TO_ALL, BROADCAST -> move(start, end);
          case CUSTOM -> throw new IllegalStateException("a custom op is a local instruction");
        }
      }
    }

    private void allReduce(boolean start, boolean end) {
      long elements = operand().type().numel();
      if (collective.variant() == Variant.ONE_SHOT) {
        combine(0, elements, ImmutableList.of(of(self, result())), start, end, Direction.PULL);
      } else {
        long from = sliceStart(elements, self);
        long skipped = from * dtype().bytes();
        var targets =
            IntStream.range(0, size)
                .mapToObj(peer -> of(peer, result()).plus(skipped))
                .collect(ImmutableList.toImmutableList());
        combine(from, sliceStart(elements, self + 1) - from, targets, start, end, Direction.PUSH);
      }
    }

    /** Slices are whole vectors; the last ones may be short or empty. */
    private long sliceStart(long elements, int slice) {
      long perVector = Math.max(1, Kernel.VECTOR / dtype().bytes());
      long vectors = Math.ceilDiv(elements, perVector);
      return Math.min(elements, Math.ceilDiv(vectors, size) * slice * perVector);
    }

    private void reduceScatter(boolean start, boolean end) {
      long part = result().type().numel();
      combine(self * part, part, ImmutableList.of(of(self, result())), start, end, Direction.PULL);
    }

    private DType dtype() {
      return result().type().dtype();
    }

    private void combine(
        long first,
        long elements,
        ImmutableList<Address> targets,
        boolean start,
        boolean end,
        Direction direction) {
      int parts = partsOfElement();
      var computed = computedIn();
      var sources =
          IntStream.range(0, size)
              .mapToObj(peer -> of(peer, operand()).plus(first * dtype().bytes()))
              .collect(ImmutableList.toImmutableList());
      combine(
          sources,
          targets,
          elements * parts,
          computed,
          collective.reduceOp(),
          start,
          end,
          direction);
    }

    private int partsOfElement() {
      return dtype().kind() == DType.Kind.COMPLEX ? 2 : 1;
    }

    private DType computedIn() {
      var type =
          switch (dtype()) {
            case C32 -> DType.F16;
            case C64 -> DType.F32;
            case C128 -> DType.F64;
            default -> dtype();
          };
      if (!CTypes.computes(type)) {
        throw unsupported(
            "a reduction %s of %s".formatted(collective.reduceOp(), dtype().shortName()));
      }
      return type;
    }

    private void combine(
        ImmutableList<Address> sources,
        ImmutableList<Address> targets,
        long elements,
        DType type,
        String reduceOp,
        boolean start,
        boolean end,
        Direction direction) {
      boolean aligned =
          sources.stream().allMatch(Address::isVectorAligned)
              && targets.stream().allMatch(Address::isVectorAligned);
      long vectors = aligned ? elements * type.bytes() / Kernel.VECTOR : 0;
      var kernel =
          CollectiveKernels.combine(
              size,
              THREADS,
              sources.size(),
              targets.size(),
              unrolled(sources.size()),
              type,
              reduceOp,
              start,
              end,
              direction);
      var words = meeting();
      sources.forEach(address -> words.add(new Word.Memory(address)));
      targets.forEach(address -> words.add(new Word.Memory(address)));
      words.add(new Word.Number(vectors), new Word.Number(elements));
      // A slice may be shorter on the last ranks, but all must launch as many blocks.
      long most =
          collective.variant() == Variant.TWO_SHOT
              ? sliceStart(operand().type().numel(), 1) * type.bytes() / Kernel.VECTOR
              : elements * type.bytes() / Kernel.VECTOR;
      steps.add(
          new DeviceStep.Launch(
              collective.stream(),
              kernel,
              blocks(most, 1),
              THREADS,
              words.build(),
              collective.name()));
    }

    /** Vectors in flight in each thread: as many as fit into registers. */
    private static int unrolled(int sources) {
      return sources <= 4 ? 4 : sources <= 8 ? 2 : 1;
    }

    /** Enough blocks for a vector in each thread, up to the most that may meet. */
    private int blocks(long vectors, int pieces) {
      int most = DeviceProgram.MAX_BLOCKS / pieces;
      return pieces * Math.clamp(Math.ceilDiv(vectors, THREADS), 1, most);
    }

    private ImmutableList.Builder<Word> meeting() {
      var words = ImmutableList.<Word>builder();
      for (int peer = 0; peer < size; peer++) {
        words.add(new Word.Flags(place, rankOf(peer)));
      }
      return words.add(
          new Word.Meetings(place),
          Word.Failure.FAILURE,
          Word.Patience.PATIENCE,
          new Word.Number(self));
    }

    private void allGather(boolean start, boolean end) {
      if (collective.variant() == Variant.ONE_SHOT) {
        move(start, end);
        return;
      }
      long part = operand().type().bytes();
      var targets =
          IntStream.rangeClosed(1, size)
              .mapToObj(i -> of((self + i) % size, result()).plus(self * part))
              .collect(ImmutableList.toImmutableList());
      var unit = unit();
      combine(
          ImmutableList.of(of(self, operand())),
          targets,
          part / unit.bytes(),
          unit,
          "",
          start,
          end,
          Direction.PUSH);
    }

    /** What elements are copied as where 16 bytes do not fit. */
    private DType unit() {
      return switch (Math.min(8, dtype().bytes())) {
        case 1 -> DType.U8;
        case 2 -> DType.U16;
        case 4 -> DType.U32;
        default -> DType.U64;
      };
    }

    private void move(boolean start, boolean end) {
      var all = moves();
      // Ranks that have nothing to move still meet the others.
      var moves =
          all.isEmpty()
              ? ImmutableList.of(new Move(of(self, result()), of(self, result()), 0))
              : all;
      int pieces = collective.kind() == Kind.BROADCAST ? 1 : size;
      var unit = unit();
      var from = ImmutableList.<Word>builder();
      var to = ImmutableList.<Word>builder();
      var vectors = ImmutableList.<Word>builder();
      var units = ImmutableList.<Word>builder();
      for (int piece = 0; piece < pieces; piece++) {
        var move =
            piece < moves.size()
                ? moves.get(piece)
                : new Move(moves.getFirst().from(), moves.getFirst().to(), 0);
        boolean aligned = move.from().isVectorAligned() && move.to().isVectorAligned();
        from.add(new Word.Memory(move.from()));
        to.add(new Word.Memory(move.to()));
        vectors.add(new Word.Number(aligned ? move.bytes() / Kernel.VECTOR : 0));
        units.add(new Word.Number(move.bytes() / unit.bytes()));
      }
      var direction =
          collective.variant().needsSymmetricResult(collective.kind())
              ? Direction.PUSH
              : Direction.PULL;
      // Parts of an all_to_all may differ from rank to rank, but all must launch as many blocks.
      long most =
          collective.kind() == Kind.ALL_TO_ALL && !collective.sendRows().isEmpty()
              ? Long.MAX_VALUE
              : Math.max(operand().type().bytes(), 1) / Kernel.VECTOR;
      steps.add(
          new DeviceStep.Launch(
              collective.stream(),
              CollectiveKernels.move(size, THREADS, pieces, unit.bytes(), start, end, direction),
              blocks(Math.min(most, 1L << 40), pieces),
              THREADS,
              meeting()
                  .addAll(from.build())
                  .addAll(to.build())
                  .addAll(vectors.build())
                  .addAll(units.build())
                  .build(),
              collective.name()));
    }

    /** What this rank copies, beginning with the next rank, so that no link carries everything. */
    private ImmutableList<Move> moves() {
      boolean push = collective.variant().needsSymmetricResult(collective.kind());
      return switch (collective.kind()) {
        case ALL_GATHER -> gathered(push);
        case ALL_TO_ALL -> exchanged(push);
        case BROADCAST -> sent(push);
        case ALL_REDUCE, REDUCE_SCATTER, CUSTOM ->
            throw new IllegalStateException(collective.kind() + " does more than copy");
      };
    }

    private ImmutableList<Move> gathered(boolean push) {
      long part = operand().type().bytes();
      var moves = ImmutableList.<Move>builder();
      for (int i = 1; i <= size; i++) {
        int peer = (self + i) % size;
        add(
            moves,
            push ? of(self, operand()) : of(peer, operand()),
            push ? of(peer, result()).plus(self * part) : of(self, result()).plus(peer * part),
            part);
      }
      return moves.build();
    }

    private ImmutableList<Move> sent(boolean push) {
      var moves = ImmutableList.<Move>builder();
      int root = collective.root();
      long bytes = operand().type().storageBytes();
      if (!push) {
        add(moves, of(root, operand()), of(self, result()), bytes);
      } else if (self == root) {
        for (int i = 1; i <= size; i++) {
          add(moves, of(self, operand()), of((self + i) % size, result()), bytes);
        }
      }
      return moves.build();
    }

    private ImmutableList<Move> exchanged(boolean push) {
      var moves = ImmutableList.<Move>builder();
      for (int i = 1; i <= size; i++) {
        int peer = (self + i) % size;
        var other = at(peer);
        if (push) {
          long from = start(collective, collective.sendRows(), peer);
          add(
              moves,
              of(self, operand()).plus(from),
              of(peer, result()).plus(start(other, other.receiveRows(), self)),
              start(collective, collective.sendRows(), peer + 1) - from);
        } else {
          long from = start(other, other.sendRows(), self);
          add(
              moves,
              of(peer, operand()).plus(from),
              of(self, result()).plus(start(collective, collective.receiveRows(), peer)),
              start(other, other.sendRows(), self + 1) - from);
        }
      }
      return moves.build();
    }

    private void add(ImmutableList.Builder<Move> moves, Address from, Address to, long bytes) {
      if (bytes > 0 && !from.equals(to)) {
        moves.add(new Move(from, to, bytes));
      }
    }

    /** Where the rows of a peer begin, in bytes; without row counts, all have equally many. */
    private long start(Collective of, ImmutableLongArray rows, int peer) {
      var type = of.operands().get(tensor).type();
      long rowBytes = type.dtype().bytes();
      for (int i = 1; i < type.rank(); i++) {
        rowBytes *= type.size(i);
      }
      return rowBytes
          * (rows.isEmpty() ? type.size(0) / size * peer : rows.subArray(0, peer).stream().sum());
    }

    private void nccl(boolean windows) {
      var calls = ImmutableList.<NcclCall>builder();
      for (tensor = 0; tensor < collective.operands().size(); tensor++) {
        var from = of(self, operand());
        var to = of(self, result());
        long count = operand().type().numel();
        switch (collective.kind()) {
          case ALL_REDUCE -> calls.add(reducing(NcclFunction.ALL_REDUCE, from, to, count));
          case REDUCE_SCATTER ->
              calls.add(reducing(NcclFunction.REDUCE_SCATTER, from, to, result().type().numel()));
          case ALL_GATHER ->
              calls.add(copying(NcclFunction.ALL_GATHER, from, to, operand().type().bytes(), -1));
          case BROADCAST ->
              calls.add(
                  copying(
                      NcclFunction.BROADCAST,
                      from,
                      to,
                      operand().type().storageBytes(),
                      collective.root()));
          case ALL_TO_ALL -> exchange(calls, from, to);
          case CUSTOM -> throw new IllegalStateException("a custom op is a local instruction");
        }
      }
      steps.add(
          new DeviceStep.Nccl(
              collective.stream(),
              collective.group().members(),
              self,
              windows,
              calls.build(),
              collective.name()));
    }

    private NcclCall reducing(NcclFunction function, Address from, Address to, long count) {
      if (!ImmutableList.of("sum", "avg", "product", "min", "max")
          .contains(collective.reduceOp())) {
        throw unsupported("a reduction %s by NCCL".formatted(collective.reduceOp()));
      }
      if (dtype() == DType.BOOL || dtype() == DType.I16 || dtype() == DType.U16) {
        throw unsupported("a reduction of %s by NCCL".formatted(dtype().shortName()));
      }
      return new NcclCall(
          function, from, to, count * partsOfElement(), computedIn(), collective.reduceOp(), -1);
    }

    /** Bytes, in the largest type that fits, as NCCL counts in elements. */
    private NcclCall copying(
        NcclFunction function, Address from, Address to, long bytes, int peer) {
      var unit = unit();
      // NCCL has no 16-bit integers; nothing is computed, so that floats do as well.
      var type = unit == DType.U16 ? DType.F16 : unit;
      return new NcclCall(function, from, to, bytes / unit.bytes(), type, "", peer);
    }

    private void exchange(ImmutableList.Builder<NcclCall> calls, Address from, Address to) {
      for (int peer = 0; peer < size; peer++) {
        var other = at(peer);
        long sent = start(collective, collective.sendRows(), peer);
        long sentEnd = start(collective, collective.sendRows(), peer + 1);
        long got = start(collective, collective.receiveRows(), peer);
        long gotBytes =
            start(other, other.sendRows(), self + 1) - start(other, other.sendRows(), self);
        calls.add(
            copying(NcclFunction.SEND, from.plus(sent), from.plus(sent), sentEnd - sent, peer));
        calls.add(copying(NcclFunction.RECEIVE, to.plus(got), to.plus(got), gotBytes, peer));
      }
    }
  }
}
