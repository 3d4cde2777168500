package dev.symplan.runtime.cuda;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.cuda.DeviceProgram;

/** Where a GPU finds what all ranks share, its own part included. */
interface Peers {

  /** What each rank shares with the others. */
  enum Region {
    /** The symmetric arena. */
    ARENA,
    /** What kernels meet by. */
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
