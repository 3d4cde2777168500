package dev.symplan.runtime.cuda;

import org.bytedeco.cuda.global.nccl;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/** Allocates the memory of one GPU that peers access. */
interface Sharing {

  /**
   * {@return new memory of the current GPU}
   *
   * @param bytes of which there may be more
   */
  Pointer allocate(Peers.Region region, long bytes, Check check);

  /** Frees what was allocated for a region. */
  void free(Pointer memory, Check check);

  /** Memory that every GPU of this process reaches: NCCL sees to that. */
  enum WithinProcess implements Sharing {
    WITHIN_PROCESS;

    @Override
    public Pointer allocate(Peers.Region region, long bytes, Check check) {
      var memory = new BytePointer();
      check.nccl(nccl.ncclMemAlloc(memory, bytes), "ncclMemAlloc of " + bytes + " bytes");
      return memory;
    }

    @Override
    public void free(Pointer memory, Check check) {
      check.nccl(nccl.ncclMemFree(memory), "ncclMemFree");
    }
  }
}
