package dev.symplan.runtime.cuda;

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

  /** {@return where a rank's flags for a signal pad are} */
  default long flags(int rank, int pad) {
    return base(rank, Region.FLAGS) + (long) pad * DeviceProgram.FLAGS * Integer.BYTES;
  }
}
