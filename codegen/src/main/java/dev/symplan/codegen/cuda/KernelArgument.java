package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.machine.Alignment;

/** One argument of a kernel, of one 8-byte word or several. */
public sealed interface KernelArgument {

  /** {@return the number of 8-byte words that it takes} */
  default int words() {
    return 1;
  }

  /** A number. */
  record Number(long value) implements KernelArgument {}

  /**
   * The address of memory, a peer's where the arena is symmetric. In the memory beside the arenas,
   * which all kernels of a stream share, a kernel leaves what the next ones of the same op read.
   *
   * @param bytes how far the kernel may reach from there
   */
  record Memory(Address address, long bytes) implements KernelArgument {
    static Memory of(int rank, TensorRef ref) {
      return new Memory(Address.of(rank, ref), ref.type().storageBytes());
    }

    /** {@return whether two stretches have nothing in common} */
    boolean isApart(Memory other) {
      return address.rank() != other.address.rank()
          || address.arena() != other.address.arena()
          || address.index() != other.address.index()
          || address.offset() + bytes <= other.address.offset()
          || other.address.offset() + other.bytes <= address.offset();
    }
  }

  /**
   * The address of symmetric memory of all ranks of a group at once, by NVLink multicast.
   *
   * @param bytes how far the kernel may reach from there
   */
  record Multicast(ImmutableIntArray members, long offset, long bytes) implements KernelArgument {}

  /**
   * How Hopper's copy engine of a multiprocessor finds boxes in matrices of 16-bit elements: CUDA's
   * tensor map. A box has lines of {@link #BOX} elements; what lies outside of its matrix is 0. The
   * chunks of 16 bytes of each line are permuted in shared memory.
   *
   * @param near elements of a line of a matrix, side by side
   * @param pitch elements from one line to the next
   * @param matrixPitch elements from one matrix to the next
   * @param boxLines lines of a box
   */
  record TensorMap(
      Address address,
      long near,
      long lines,
      long pitch,
      long matrices,
      long matrixPitch,
      int boxLines)
      implements KernelArgument {

    /** Elements of a line of a box. */
    public static final int BOX = 64;

    private static final int ELEMENT_BYTES = 2;
    private static final long MAX_SIZE = 1L << 32;
    private static final long MAX_PITCH = 1L << 40;

    @Override
    public int words() {
      return 16;
    }

    public long pitchBytes() {
      return pitch * ELEMENT_BYTES;
    }

    public long matrixPitchBytes() {
      return matrixPitch * ELEMENT_BYTES;
    }

    /** {@return how far boxes may reach from the address} */
    public long bytes() {
      return ((matrices - 1) * matrixPitch + (lines - 1) * pitch + near) * ELEMENT_BYTES;
    }

    /** {@return whether CUDA can encode it} */
    boolean isEncodable() {
      return address.isVectorAligned()
          && Math.min(near, Math.min(lines, matrices)) > 0
          && Math.max(near, Math.max(lines, matrices)) <= MAX_SIZE
          && isPitch(pitchBytes())
          && isPitch(matrixPitchBytes())
          && pitch >= near;
    }

    private static boolean isPitch(long bytes) {
      return bytes > 0 && bytes < MAX_PITCH && bytes % Alignment.VECTOR == 0;
    }
  }

  /** The address of a rank's flags for one signal pad. */
  record Flags(int pad, int rank) implements KernelArgument {}

  /** The address of this rank's count of meetings, by block, for one signal pad. */
  record Meetings(int pad) implements KernelArgument {}

  /** The address where a kernel says that it gave up; the host sees it. */
  enum Failure implements KernelArgument {
    FAILURE
  }

  /** The time that a kernel waits for its peers, in nanoseconds. */
  enum Timeout implements KernelArgument {
    TIMEOUT
  }
}
