package dev.symplan.runtime.cuda;

import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclConfig_t;
import org.bytedeco.cuda.nccl.ncclUniqueId;

/**
 * Communicators whose collectives between windows are done by the copy engines (NCCL from 2.28 on).
 * All of such a communicator's are, so it is for nothing else.
 */
final class ZeroCta {

  /** {@code NCCL_API_MAGIC}: what a filled configuration begins with. */
  private static final int MAGIC = 0xcafebeef;

  /** {@code NCCL_CONFIG_UNDEF_INT}. */
  private static final int UNDEFINED = Integer.MIN_VALUE;

  private static final int WARM_UP_BYTES = 16;

  private ZeroCta() {}

  /** {@return NCCL's status} */
  static int join(ncclComm communicator, int ranks, ncclUniqueId id, int self) {
    try (var config = config()) {
      return nccl.ncclCommInitRankConfig(communicator, ranks, id, self, config);
    }
  }

  /**
   * {@return the values of NCCL_CONFIG_INITIALIZER, which the bindings do not have, with this
   * policy}
   */
  private static ncclConfig_t config() {
    var config = new ncclConfig_t();
    return config
        .size(config.sizeof())
        .magic(MAGIC)
        .version(nccl.NCCL_VERSION_CODE)
        .blocking(UNDEFINED)
        .cgaClusterSize(UNDEFINED)
        .minCTAs(UNDEFINED)
        .maxCTAs(UNDEFINED)
        .splitShare(UNDEFINED)
        .trafficClass(UNDEFINED)
        .collnetEnable(UNDEFINED)
        .CTAPolicy(nccl.NCCL_CTA_POLICY_ZERO)
        .shrinkShare(UNDEFINED)
        .nvlsCTAs(UNDEFINED)
        .nChannelsPerNetPeer(UNDEFINED)
        .nvlinkCentricSched(UNDEFINED)
        .graphUsageMode(UNDEFINED)
        .numRmaCtx(UNDEFINED);
  }

  /**
   * The first collective allocates, and registers a window, with all ranks: nothing for a capture.
   * It moves a few bytes of fresh memory, which are all alike.
   */
  static void warmUp(ncclComm communicator, int ranks, GpuMemory memory, Check check) {
    long bytes = (ranks + 1L) * WARM_UP_BYTES;
    if (bytes > memory.symmetricBytes()) {
      return;
    }
    var stream = new CUstream_st();
    check.runtime(
        cudart.cudaStreamCreateWithFlags(stream, cudart.cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
    long arena = memory.region(Peers.Region.ARENA).address();
    check.nccl(
        nccl.ncclAllGather(
            new DevicePointer(arena + (long) ranks * WARM_UP_BYTES),
            new DevicePointer(arena),
            WARM_UP_BYTES,
            nccl.ncclUint8,
            communicator,
            stream),
        "ncclAllGather by the copy engines");
    check.runtime(cudart.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check.runtime(cudart.cudaStreamDestroy(stream), "cudaStreamDestroy");
  }
}
