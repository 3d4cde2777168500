package dev.symplan.runtime.cuda;

import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.cuda.Peers.Region;
import java.util.function.LongConsumer;

/**
 * The addresses of tensors for the steps of one rank. The caller's tensors may have other addresses
 * in each run.
 */
final class Locations {
  private final int rank;
  private final GpuMemory memory;
  private final Peers peers;

  Locations(int rank, GpuMemory memory, Peers peers) {
    this.rank = rank;
    this.memory = memory;
    this.peers = peers;
  }

  /** {@return a pointer to a location, where that is at the time of the call that takes it} */
  DevicePointer pointer(Address address) {
    var pointer = new DevicePointer(0);
    follow(address, pointer::moveTo);
    return pointer;
  }

  /** {@return a pointer to a tensor, where that is at the time of the call that takes it} */
  DevicePointer pointer(TensorRef ref) {
    return pointer(Address.of(rank, ref));
  }

  /** Calls with a location as soon as it is known, and again when it is another one. */
  void follow(Address address, LongConsumer use) {
    if (address.rank() != rank && address.arena() != ArenaKind.SYMMETRIC) {
      throw new IllegalStateException("a peer's memory that is not symmetric: " + address);
    }
    if (address.isScratch()) {
      throw new IllegalStateException("only kernels and copies know memory beside the arenas");
    }
    long offset = address.offset();
    if (address.arena().isExternal()) {
      memory.external().follow(address.arena(), address.index(), base -> use.accept(base + offset));
    } else if (address.rank() == rank) {
      use.accept(memory.address(address.arena(), address.index(), offset));
    } else {
      use.accept(peers.base(address.rank(), Region.ARENA) + offset);
    }
  }
}
