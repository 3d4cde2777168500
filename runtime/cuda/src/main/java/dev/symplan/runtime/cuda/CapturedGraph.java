package dev.symplan.runtime.cuda;

import org.bytedeco.cuda.cudart.CUgraphExec_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;

/** Work that was captured from streams, to be launched as one graph. */
final class CapturedGraph implements AutoCloseable {
  private final Check check;
  private final CUgraphExec_st executable = new CUgraphExec_st();

  /**
   * Captures, and waits until the GPU has the graph.
   *
   * @param origin the stream in which the graph begins and ends
   * @param enqueue puts work into it, and into streams that join it again
   */
  CapturedGraph(Check check, CUstream_st origin, Runnable enqueue) {
    this.check = check;
    check.runtime(
        cudart.cudaStreamBeginCapture(origin, cudart.cudaStreamCaptureModeRelaxed),
        "cudaStreamBeginCapture");
    var graph = new CUgraph_st();
    try {
      enqueue.run();
    } catch (RuntimeException e) {
      // The failure invalidated the capture: its end only repeats that.
      cudart.cudaStreamEndCapture(origin, graph);
      throw e;
    }
    check.runtime(cudart.cudaStreamEndCapture(origin, graph), "cudaStreamEndCapture");
    check.runtime(cudart.cudaGraphInstantiate(executable, graph, 0), "cudaGraphInstantiate");
    check.runtime(cudart.cudaGraphDestroy(graph), "cudaGraphDestroy");
    check.runtime(cudart.cudaGraphUpload(executable, origin), "cudaGraphUpload");
    check.runtime(cudart.cudaStreamSynchronize(origin), "cudaStreamSynchronize");
  }

  void launch(CUstream_st stream) {
    check.runtime(cudart.cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  }

  @Override
  public void close() {
    check.runtime(cudart.cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  }
}
