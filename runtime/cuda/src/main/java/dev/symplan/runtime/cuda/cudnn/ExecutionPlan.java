package dev.symplan.runtime.cuda.cudnn;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Streams;
import java.util.List;
import java.util.stream.Stream;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.global.cudnn;
import org.bytedeco.javacpp.Pointer;

/**
 * A kernel of cuDNN for one {@link OperationGraph}.
 *
 * @param workspaceBytes the bytes that each execution needs beside its tensors
 * @param scalarUids the names of the graph's own numbers
 * @param scalars where they are, in the host's memory
 */
record ExecutionPlan(
    cudnnContext handle,
    Descriptor descriptor,
    long workspaceBytes,
    ImmutableList<Long> scalarUids,
    ImmutableList<Pointer> scalars) {

  /**
   * Puts the kernel into the handle's stream.
   *
   * @param uids the names of the tensors in memory
   * @param addresses where these are, in the same order
   */
  void execute(List<Long> uids, List<? extends Pointer> addresses, Pointer workspace) {
    try (var pack = new Descriptor(cudnn.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)) {
      pack.longs(
              cudnn.CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
              Stream.concat(uids.stream(), scalarUids.stream())
                  .mapToLong(Long::longValue)
                  .toArray())
          .addresses(
              cudnn.CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
              Streams.concat(addresses.stream(), scalars.stream()).toArray(Pointer[]::new))
          .addresses(cudnn.CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
          .finish();
      CudnnException.check(
          cudnn.cudnnBackendExecute(handle, descriptor.pointer(), pack.pointer()),
          "cudnnBackendExecute");
    }
  }
}
