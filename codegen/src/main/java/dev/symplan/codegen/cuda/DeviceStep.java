package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.StreamKind;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** One thing that is put into a stream of a rank's GPU; all is fixed but where memory is. */
public sealed interface DeviceStep {

  StreamKind stream();

  /** {@return the launches of generated kernels that it may lead to} */
  default ImmutableList<Launch> launches() {
    return switch (this) {
      case Launch launch -> ImmutableList.of(launch);
      case HopperLaunch both ->
          ImmutableList.<Launch>builder()
              .add(both.launch())
              .addAll(launches(both.otherwise()))
              .build();
      case Product product ->
          product.scales().map(scales -> launches(scales.otherwise())).orElse(ImmutableList.of());
      case Attention attention -> launches(attention.otherwise());
      case AttentionBackward attention -> launches(attention.otherwise());
      case Convolution convolution -> launches(convolution.otherwise());
      case Copy _, CopyRows _, Nccl _, Mark _, Await _ -> ImmutableList.of();
    };
  }

  private static ImmutableList<Launch> launches(ImmutableList<DeviceStep> steps) {
    return steps.stream()
        .flatMap(step -> step.launches().stream())
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * A launch of a generated kernel.
   *
   * @param sharedBytes the shared memory that a block gets besides what its text declares
   * @param words its arguments
   * @param streamed the matrices whose every element it reads once, which takes most of its time
   * @param label its name in messages
   * @param shares the share of each instruction, in order, if it is for several
   * @param dependent whether it may begin while the step before it still runs; the kernel waits for
   *     that step itself
   */
  record Launch(
      StreamKind stream,
      Kernel kernel,
      int blocks,
      int threads,
      int sharedBytes,
      ImmutableList<KernelArgument> words,
      ImmutableList<KernelArgument.Memory> streamed,
      String label,
      ImmutableList<Share> shares,
      boolean dependent)
      implements DeviceStep {

    public Launch(
        StreamKind stream,
        Kernel kernel,
        int blocks,
        int threads,
        ImmutableList<KernelArgument> words,
        String label) {
      this(
          stream,
          kernel,
          blocks,
          threads,
          0,
          words,
          ImmutableList.of(),
          label,
          ImmutableList.of(),
          false);
    }

    Launch withShared(int bytes) {
      return new Launch(
          stream, kernel, blocks, threads, bytes, words, streamed, label, shares, dependent);
    }

    Launch with(ImmutableList<Share> newShares) {
      return new Launch(
          stream,
          kernel,
          blocks,
          threads,
          sharedBytes,
          words,
          streamed,
          label,
          newShares,
          dependent);
    }

    Launch with(Kernel newKernel, boolean newDependent) {
      return new Launch(
          stream,
          newKernel,
          blocks,
          threads,
          sharedBytes,
          words,
          streamed,
          label,
          shares,
          newDependent);
    }

    Launch streaming(ImmutableList<KernelArgument.Memory> matrices) {
      return new Launch(
          stream, kernel, blocks, threads, sharedBytes, words, matrices, label, shares, dependent);
    }

    /** {@return the launch with more blocks and arguments, of a kernel that has work for them} */
    Launch with(Kernel newKernel, int moreBlocks, List<KernelArgument> moreWords) {
      return new Launch(
          stream,
          newKernel,
          blocks + moreBlocks,
          threads,
          sharedBytes,
          ImmutableList.<KernelArgument>builder().addAll(words).addAll(moreWords).build(),
          streamed,
          label,
          shares,
          dependent);
    }
  }

  /**
   * A launch of a kernel for Hopper GPUs (sm_90a), which has instructions, or needs more shared
   * memory, than others have.
   *
   * @param otherwise the steps that compute the same on other GPUs
   * @param sameBits whether both add up in the same order
   */
  record HopperLaunch(Launch launch, ImmutableList<DeviceStep> otherwise, boolean sameBits)
      implements DeviceStep {

    public HopperLaunch {
      if (otherwise.isEmpty()) {
        throw new IllegalArgumentException(
            "'%s' does nothing on other GPUs".formatted(launch.label()));
      }
    }

    @Override
    public StreamKind stream() {
      return launch.stream();
    }
  }

  /**
   * The share of one instruction in a launch.
   *
   * @param label the name of the instruction in messages
   * @param bytes that it moves at least
   */
  record Share(String label, long bytes) {}

  /** A copy of bytes by the copy engines, also to a peer. */
  record Copy(StreamKind stream, Address from, Address to, long bytes, String label)
      implements DeviceStep {}

  /**
   * A copy of rows by the copy engines, also to a peer.
   *
   * @param fromPitch bytes from one row to the next where they are read
   * @param toPitch the same where they are written
   * @param bytes of each row
   */
  record CopyRows(
      StreamKind stream,
      Address from,
      long fromPitch,
      Address to,
      long toPitch,
      long bytes,
      long rows,
      String label)
      implements DeviceStep {

    public CopyRows {
      if (rows < 1 || bytes < 1 || fromPitch < bytes || toPitch < bytes) {
        throw new IllegalArgumentException(
            "%s rows of %s bytes, by %s to %s".formatted(rows, bytes, fromPitch, toPitch));
      }
    }

    /** {@return from the first byte that is read to the end of the last} */
    public long fromExtent() {
      return (rows - 1) * fromPitch + bytes;
    }

    /** {@return from the first byte that is written to the end of the last} */
    public long toExtent() {
      return (rows - 1) * toPitch + bytes;
    }
  }

  /**
   * {@code result = beta · addend + alpha · left · right + bias}, column-major as BLAS has it.
   *
   * @param addend the result itself where {@code beta} is 0; never transposed
   * @param bias one number for each row, of the result's type
   * @param scales factors of operands that are 8-bit floats; others have none, and all matrices are
   *     of one type then
   */
  record Product(
      StreamKind stream,
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
      Optional<Scales> scales,
      String label)
      implements DeviceStep {

    /** {@return the type of the result} */
    public DType dtype() {
      return result.dtype();
    }
  }

  /**
   * Numbers in f32 by which a product is multiplied.
   *
   * @param left one, or one for each row of the left matrix
   * @param right one, or one for each column of the right matrix
   * @param byLine whether each row and column has its own
   * @param fast whether sums may be less precise
   * @param otherwise the steps that compute the same without the library
   */
  record Scales(
      Address left,
      Address right,
      boolean byLine,
      boolean fast,
      ImmutableList<DeviceStep> otherwise) {}

  /**
   * A column-major matrix of a product.
   *
   * @param transposed whether it is stored the other way round
   * @param leading elements from one column to the next
   * @param batchStride elements from one matrix to the next
   */
  record Matrix(Address address, DType dtype, boolean transposed, long leading, long batchStride) {

    /** {@return a number of bytes, 16 at most, by multiples of which the matrices begin} */
    public int alignment() {
      long offset = address.offset() | batchStride * dtype.bytes() | Alignment.VECTOR;
      return Math.toIntExact(Long.lowestOneBit(offset));
    }
  }

  /**
   * Scaled dot-product attention that a library may compute, with scores and sums in f32: {@code
   * softmax(scale · query · keyᵀ + bias) · value}. All tensors have the dimensions [batch, heads,
   * rows, features], and the strides of features are 1.
   *
   * @param out as wide as the value
   * @param logs f32, for each row the logarithm of the sum of its exponentials; dense
   * @param otherwise the steps that compute the same without the library
   */
  record Attention(
      StreamKind stream,
      Scores scores,
      TensorRef value,
      TensorRef out,
      Optional<TensorRef> logs,
      ImmutableList<DeviceStep> otherwise,
      String label)
      implements DeviceStep {

    /** {@return all tensors that it reads and writes} */
    public ImmutableList<TensorRef> tensors() {
      return Stream.of(scores.tensors().stream(), Stream.of(value, out), logs.stream())
          .flatMap(refs -> refs)
          .collect(ImmutableList.toImmutableList());
    }
  }

  /**
   * The gradients of attention; see {@link Attention}.
   *
   * @param out the result of the forward pass
   * @param logs as the forward pass computed them
   * @param grad the gradient of the result
   */
  record AttentionBackward(
      StreamKind stream,
      Scores scores,
      TensorRef value,
      TensorRef out,
      TensorRef logs,
      TensorRef grad,
      TensorRef ofQuery,
      TensorRef ofKey,
      TensorRef ofValue,
      ImmutableList<DeviceStep> otherwise,
      String label)
      implements DeviceStep {

    /** {@return all tensors that it reads and writes} */
    public ImmutableList<TensorRef> tensors() {
      return Stream.concat(
              scores.tensors().stream(), Stream.of(value, out, logs, grad, ofQuery, ofKey, ofValue))
          .collect(ImmutableList.toImmutableList());
    }
  }

  /**
   * The scores that the softmax of attention takes.
   *
   * @param key with as many heads as the query, or a divisor of that
   * @param bias the tensor that is added to scaled scores, of size 1 where it is broadcast
   * @param causal whether the row {@code i} of the query sees the keys up to {@code i} only
   */
  record Scores(
      TensorRef query, TensorRef key, Optional<TensorRef> bias, boolean causal, double scale) {
    ImmutableList<TensorRef> tensors() {
      return Stream.concat(Stream.of(query, key), bias.stream())
          .collect(ImmutableList.toImmutableList());
    }
  }

  /**
   * A convolution that a library may compute, or one of its gradients, with sums in f32 (f64 for
   * f64). All tensors are [batch, channels, …] with two or three dimensions more.
   *
   * @param pass which of the tensors is computed from the other two
   * @param large the image over which windows slide; the result of {@code BACKWARD_DATA}
   * @param weight with the channels of the small image, and those of a group of the large one; the
   *     result of {@code BACKWARD_FILTER}
   * @param small with an element for each window; the result of {@code FORWARD}
   * @param scratchBytes of the memory beside the arenas that the library must leave alone; tensors
   *     may lie there
   * @param otherwise the steps that compute the same without the library
   */
  record Convolution(
      StreamKind stream,
      Pass pass,
      TensorRef large,
      TensorRef weight,
      TensorRef small,
      SlidingWindows windows,
      long scratchBytes,
      ImmutableList<DeviceStep> otherwise,
      String label)
      implements DeviceStep {

    /** The three computations that convolutions need; the words are cuDNN's. */
    public enum Pass {
      FORWARD,
      BACKWARD_DATA,
      BACKWARD_FILTER
    }

    public Convolution {
      if (!windows.fit(large.type(), weight.type(), small.type())) {
        throw new IllegalArgumentException(
            "a convolution of %s, %s and %s by %s".formatted(large, weight, small, windows));
      }
      long kept = scratchBytes;
      if (Stream.of(large, weight, small).anyMatch(ref -> ref.scratchEnd() > kept)) {
        throw new IllegalArgumentException(
            "a convolution of %s, %s and %s keeps %s bytes".formatted(large, weight, small, kept));
      }
    }

    /** {@return all tensors that it reads and writes} */
    public ImmutableList<TensorRef> tensors() {
      return ImmutableList.of(large, weight, small);
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

  /** A function of NCCL. */
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
   * @param reduceOp empty if nothing is reduced
   * @param peer the root of a broadcast, or the other side, in the group; -1 if none exists
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
