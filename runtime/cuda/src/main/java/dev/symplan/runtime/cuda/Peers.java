package dev.symplan.runtime.cuda;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.cuda.DeviceProgram;

/** The addresses of the memory that ranks share, as one GPU sees them, including its own part. */
interface Peers {

  /** A region that each rank shares with the other ranks. */
  enum Region {
    /** The symmetric arena. */
    ARENA,
    /** The flags by which kernels meet. */
    FLAGS
  }

  /** {@return the address at which this GPU reaches a rank's region} */
  long base(int rank, Region region);

  /** {@return the address that stands for the beginnings of the arenas of several ranks} */
  default long multicast(ImmutableIntArray members) {
    throw new IllegalStateException("no multicast object of the ranks " + members);
  }

  /** {@return the same, with the multicast addresses of this GPU} */
  default Peers with(MulticastMember member) {
    var plain = this;
    return new Peers() {
      @Override
      public long base(int rank, Region region) {
        return plain.base(rank, region);
      }

      @Override
      public long multicast(ImmutableIntArray members) {
        return member.base(members);
      }
    };
  }

  /** {@return where a rank's flags for a signal pad are} */
  default long flags(int rank, int pad) {
    return base(rank, Region.FLAGS) + (long) pad * DeviceProgram.FLAGS * Integer.BYTES;
  }
}
