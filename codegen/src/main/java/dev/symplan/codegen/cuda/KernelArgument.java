package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;

/** One 8-byte word of a kernel's arguments. */
public sealed interface KernelArgument {

  /** A number. */
  record Number(long value) implements KernelArgument {}

  /**
   * The address of memory, a peer's where the arena is symmetric.
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
