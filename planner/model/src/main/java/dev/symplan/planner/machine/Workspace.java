package dev.symplan.planner.machine;

import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Protocol.Slice;
import java.util.Optional;

/**
 * How the tensor of a collective passes through the workspace of its group.
 *
 * <p>Each sender stores packets into its own slot in each receiver's workspace. No signal follows:
 * a slot is empty as long as all its bits are set, so the receiver sees each packet arrive, takes
 * it, and empties its slot. Collectives alternate between two halves. A rank that is at one
 * collective has all that its peers sent in the one before, which they sent after the one before
 * that: the half is empty everywhere, and no barrier is needed to say so. (TensorRT-LLM's and
 * SGLang's push kernels do it this way; the packets with flags are those of NCCL's LL protocol.)
 *
 * @param ranks the size of the group
 * @param rounds how often each rank sends to each other one, to slots of their own
 * @param packets the number of packets in each slot; each carries {@value Alignment#VECTOR} bytes
 * @param flagged whether a packet takes twice the room, for words that say that it is there: where
 *     the bits of the data may all be set, and which ones matter
 */
public record Workspace(int ranks, int rounds, long packets, boolean flagged) {

  /**
   * The value of every byte of an empty slot. The whole workspace is empty before the first run.
   */
  public static final byte EMPTY = (byte) 0xFF;

  /** Consecutive collectives take other parts of the workspace. */
  public static final int HALVES = 2;

  public Workspace {
    if (ranks < 2 || rounds < 1 || packets < 0) {
      throw new IllegalArgumentException(
          "a workspace of %s ranks, %s rounds, %s packets".formatted(ranks, rounds, packets));
    }
  }

  /**
   * {@return the layout for one tensor; empty if the variant needs no workspace}
   *
   * @param bytes of one rank's operand
   */
  public static Optional<Workspace> of(
      VariantSpec spec, Optional<ReduceOp> reduceOp, DType dtype, long bytes, int ranks) {
    var pushes = spec.protocol().pushes();
    if (pushes.isEmpty()) {
      return Optional.empty();
    }
    long packets = Math.ceilDiv(bytes, Alignment.VECTOR);
    boolean whole = pushes.stream().allMatch(part -> part == Slice.WHOLE);
    return Optional.of(
        new Workspace(
            ranks,
            pushes.size(),
            whole ? packets : Math.ceilDiv(packets, ranks),
            !hasSpareBits(reduceOp, dtype)));
  }

  /**
   * Whether a word of set bits is not a number, and which one it is does not show in the result:
   * arithmetic, and rounding to 16 bits, make one of their own of each.
   */
  private static boolean hasSpareBits(Optional<ReduceOp> reduceOp, DType dtype) {
    boolean compares = reduceOp.filter(op -> op == ReduceOp.MIN || op == ReduceOp.MAX).isPresent();
    return dtype == DType.BF16 || dtype == DType.F16 || (dtype == DType.F32 && !compares);
  }

  /** {@return the bytes that one packet takes} */
  int packetBytes() {
    return flagged ? 2 * Alignment.VECTOR : Alignment.VECTOR;
  }

  /** {@return the bytes of what one rank sends to another one} */
  public long slotBytes() {
    return packets * packetBytes();
  }

  /** {@return the bytes of one half, which begins where a buffer may} */
  long halfBytes() {
    return Alignment.roundUp(rounds * (ranks - 1L) * slotBytes());
  }

  /** {@return the bytes of the whole workspace, if no other collective needs more} */
  public long bytes() {
    return HALVES * halfBytes();
  }

  /**
   * {@return where a slot begins in a half of the receiver's workspace}
   *
   * @param receiver a rank's position in the group
   * @param sender another one's
   */
  public long slot(int round, int receiver, int sender) {
    if (receiver == sender) {
      throw new IllegalArgumentException("rank %s sends nothing to itself".formatted(sender));
    }
    int index = sender < receiver ? sender : sender - 1;
    return (round * (ranks - 1L) + index) * slotBytes();
  }
}
