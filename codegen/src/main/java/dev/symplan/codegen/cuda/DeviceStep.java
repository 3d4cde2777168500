package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;

/** One thing that is put into a stream of a rank's GPU; all is fixed but where memory is. */
public sealed interface DeviceStep {

  StreamKind stream();

  /**
   * A launch of a generated kernel.
   *
   * @param words its arguments
   * @param label what messages call it
   */
  record Launch(
      StreamKind stream,
      Kernel kernel,
      int blocks,
      int threads,
      ImmutableList<KernelArgument> words,
      String label)
      implements DeviceStep {}

  /** A copy of bytes by the copy engines, also to a peer. */
  record Copy(StreamKind stream, Address from, Address to, long bytes, String label)
      implements DeviceStep {}

  /**
   * {@code result = beta · addend + alpha · left · right + bias}, column-major as BLAS has it.
   *
   * @param addend the result itself where {@code beta} is 0; never transposed
   * @param bias one number for each row
   */
  record Product(
      StreamKind stream,
      DType dtype,
      long rows,
      long columns,
      long inner,
      double alpha,
      double beta,
      Matrix left,
      Matrix right,
      Matrix addend,
      Optional<Address> bias,
      Matrix result,
      long batches,
      String label)
      implements DeviceStep {}

  /**
   * A column-major matrix of a product.
   *
   * @param transposed whether it is stored the other way round
   * @param leading elements from one column to the next
   * @param batchStride elements from one matrix to the next
   */
  record Matrix(Address address, boolean transposed, long leading, long batchStride) {

    /** {@return a number of bytes, 16 at most, by multiples of which the matrices begin} */
    public int alignment(DType dtype) {
      long offset = address.offset() | batchStride * dtype.bytes() | Alignment.VECTOR;
      return Math.toIntExact(Long.lowestOneBit(offset));
    }
  }

  /**
   * Collectives of NCCL's that are issued together.
   *
   * @param members the ranks of the communicator, in order
   * @param pad where they meet: another one where another of them comes in another stream
   * @param windows whether the symmetric arena is a window of the communicator
   * @param copyEngines whether the communicator leaves all multiprocessors alone
   */
  record Nccl(
      StreamKind stream,
      ImmutableIntArray members,
      int pad,
      int self,
      boolean windows,
      boolean copyEngines,
      ImmutableList<NcclCall> calls,
      String label)
      implements DeviceStep {}

  /** Which function of NCCL's. */
  enum NcclFunction {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    BROADCAST,
    SEND,
    RECEIVE
  }

  /**
   * One call; {@code SEND} and {@code RECEIVE} have the same address twice.
   *
   * @param count in elements, as the function counts
   * @param reduceOp empty where nothing is reduced
   * @param peer the root of a broadcast, or the other side, in the group; -1 where there is none
   */
  record NcclCall(
      NcclFunction function,
      Address from,
      Address to,
      long count,
      DType dtype,
      Optional<ReduceOp> reduceOp,
      int peer) {}

  /** Marks a point of a stream. */
  record Mark(StreamKind stream, int event) implements DeviceStep {}

  /** Goes on only when another stream has passed the point. */
  record Await(StreamKind stream, int event) implements DeviceStep {}
}
