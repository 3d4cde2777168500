package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfer.Endpoint;
import dev.symplan.codegen.Transfer.InTensor;
import dev.symplan.codegen.Transfer.Rows;
import dev.symplan.codegen.Transfer.Slot;
import dev.symplan.codegen.Transfers;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.ArenaKind;

/** One rank's part of a collective: the other ranks, and the addresses of their tensors. */
final class CollectiveAddresses {

  /** Threads of a block of kernels that meet, or move a lot. */
  static final int THREADS = 512;

  /** Blocks that saturate the links where each thread has many loads and stores in flight. */
  static final int BLOCKS = 64;

  /** How far apart rows may begin that are copied as one, in bytes: what CUDA counts in an int. */
  private static final long MAX_PITCH = Integer.MAX_VALUE;

  final int rank;
  final Collective collective;

  /** This rank's position in the group, and the number of ranks there. */
  final int self;

  final int size;

  /** The number of the signal pad where the group meets, the same on all its ranks. */
  final int pad;

  private final Transfers transfers;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  CollectiveAddresses(int rank, Collective collective, Transfers transfers, int pad) {
    this.rank = rank;
    this.collective = collective;
    this.self = collective.group().self();
    this.size = collective.group().members().length();
    this.transfers = transfers;
    this.pad = pad;
  }

  ImmutableList<DeviceStep> steps() {
    return steps.build();
  }

  UnsupportedOnGpu unsupported(String what) {
    return new UnsupportedOnGpu(what, collective.name(), collective.span());
  }

  /** {@return the number of tensors: several where the collective is coalesced} */
  int tensors() {
    return collective.operands().size();
  }

  TensorRef operand(int tensor) {
    return collective.operands().get(tensor);
  }

  TensorRef result(int tensor) {
    return collective.results().get(tensor);
  }

  /** {@return the type of the elements of results, which all have in common} */
  DType dtype() {
    return result(0).type().dtype();
  }

  int rankOf(int peer) {
    return collective.group().members().get(peer);
  }

  /** {@return the same collective as a peer has it, whose shapes may differ in an all_to_all} */
  Collective at(int peer) {
    return transfers.at(peer, collective);
  }

  Address own(TensorRef ref) {
    return Address.of(rank, ref);
  }

  /**
   * {@return a peer's symmetric memory at the offset that this rank knows: it is the same there}
   */
  Address of(int peer, TensorRef ref) {
    if (peer != self && ref.arena() != ArenaKind.SYMMETRIC) {
      throw new IllegalStateException(
          "rank %s cannot reach %s of rank %s: it is not in symmetric memory"
              .formatted(rank, ref, rankOf(peer)));
    }
    return Address.of(rankOf(peer), ref);
  }

  /** {@return the transfers of this rank for a tensor} */
  ImmutableList<Transfer> transfers(int tensor) {
    return transfers.of(collective, tensor);
  }

  /** {@return the most bytes that a rank of the group moves at once for a tensor} */
  long mostBytes(int tensor) {
    return transfers.mostBytes(collective, tensor);
  }

  /** {@return where an end of a transfer is; in a workspace, for its first half} */
  Address at(int tensor, Endpoint end) {
    return switch (end) {
      case InTensor(var role, int member, long offset, var _) ->
          switch (role) {
            case OPERAND -> of(member, operand(tensor)).plus(offset);
            case RESULT -> of(member, result(tensor)).plus(offset);
            case LIBRARY -> throw new IllegalStateException("a buffer of NCCL's own");
          };
      case Slot(int round, int receiver, int sender) ->
          new Address(
              rankOf(receiver),
              ArenaKind.SYMMETRIC,
              0,
              collective.workspace().orElseThrow().offset()
                  + collective.layout(tensor).slot(round, receiver, sender));
    };
  }

  /** {@return how many numbers an element is: a complex one is two} */
  int partsOfElement() {
    return dtype().kind() == DType.Kind.COMPLEX ? 2 : 1;
  }

  /** {@return the type of these numbers} */
  DType computedIn() {
    var type = dtype().real();
    if (!CTypes.computes(type) || (type.isFloat() && type.bytes() == 1)) {
      throw unsupported(
          "a reduction %s of %s"
              .formatted(ReduceOp.text(collective.reduceOp()), dtype().shortName()));
    }
    return type;
  }

  /** {@return the type as which elements are copied where 16 bytes do not fit} */
  DType unit() {
    return switch (Math.min(8, dtype().bytes())) {
      case 1 -> DType.U8;
      case 2 -> DType.U16;
      case 4 -> DType.U32;
      default -> DType.U64;
    };
  }

  void checkSize() {
    if (size > DeviceProgram.MAX_RANKS) {
      throw unsupported("a generated kernel between " + size + " ranks");
    }
  }

  /**
   * {@return where a tensor's kernel meets: only the first does at the start, the last at the end}
   */
  Edges edges(int tensor) {
    return new Edges(
        collective.startBarrier() && tensor == 0,
        collective.endBarrier() && tensor == tensors() - 1);
  }

  /** {@return the first arguments in {@link BarrierCode#args}} */
  ImmutableList.Builder<KernelArgument> meeting() {
    return meeting(pad, collective.group());
  }

  /** {@return the same for the ranks of any group} */
  static ImmutableList.Builder<KernelArgument> meeting(int pad, GroupUse group) {
    var words = ImmutableList.<KernelArgument>builder();
    group.members().forEach(member -> words.add(new KernelArgument.Flags(pad, member)));
    return words.add(
        new KernelArgument.Meetings(pad),
        KernelArgument.Failure.FAILURE,
        KernelArgument.Timeout.TIMEOUT,
        new KernelArgument.Number(group.self()));
  }

  void launch(Kernel kernel, int blocks, int threads, ImmutableList<KernelArgument> words) {
    steps.add(
        new DeviceStep.Launch(
            collective.stream(), kernel, blocks, threads, words, collective.name()));
  }

  /**
   * {@return enough blocks for a vector in each thread}
   *
   * @param pieces each has as many blocks
   * @param most at most so many
   */
  static int blocks(long vectors, int pieces, int most) {
    return pieces * Math.clamp(Math.ceilDiv(vectors, THREADS), 1, most / pieces);
  }

  /** Copies rows where one of both ends has several, and bytes where neither does. */
  void copy(Address from, Address to, long bytes, RowsCode rows) {
    var stream = collective.stream();
    if (rows.equals(RowsCode.ONE)) {
      steps.add(new DeviceStep.Copy(stream, from, to, bytes, collective.name()));
      return;
    }
    // A row of one end is a row of the other, or some; at most so many go in one copy.
    long row = Math.min(rows.source().bytes(), rows.target().bytes());
    long longer = Math.max(rows.source().bytes(), rows.target().bytes());
    boolean far = Math.max(pitch(rows.source(), row), pitch(rows.target(), row)) > MAX_PITCH;
    long block = far ? row : longer == row ? bytes : Math.min(bytes, longer);
    for (long done = 0; done < bytes; done += block) {
      steps.add(
          new DeviceStep.CopyRows(
              stream,
              from.plus(rows.source().offset(done)),
              far ? row : pitch(rows.source(), row),
              to.plus(rows.target().offset(done)),
              far ? row : pitch(rows.target(), row),
              row,
              block / row,
              collective.name()));
    }
  }

  /** Fills bytes with zeros, without a meeting. */
  void clear(Address to, long bytes) {
    int unit = unit().bytes();
    long vectors = to.isVectorAligned() ? bytes / Alignment.VECTOR : 0;
    launch(
        CollectiveKernels.clear(unit),
        blocks(vectors, 1, BLOCKS),
        THREADS,
        ImmutableList.of(
            new KernelArgument.Memory(to, bytes),
            new KernelArgument.Number(vectors),
            new KernelArgument.Number(bytes / unit)));
  }

  /** Between rows of so many bytes, of which a row has one or more. */
  private static long pitch(Rows rows, long bytes) {
    return rows.bytes() == bytes ? rows.pitch() : bytes;
  }

  void add(DeviceStep step) {
    steps.add(step);
  }
}
