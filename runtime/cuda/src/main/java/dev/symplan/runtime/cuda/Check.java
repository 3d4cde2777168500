package dev.symplan.runtime.cuda;

import dev.symplan.runtime.cuda.cudnn.CudnnException;
import dev.symplan.runtime.failure.RunException;
import java.util.function.Supplier;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;

/** Turns status codes into exceptions that name the call and the rank. */
record Check(int rank) {

  void runtime(int status, String call) {
    if (status != cudart.cudaSuccess) {
      throw failed(call, cudart.cudaGetErrorString(status).getString());
    }
  }

  /** Takes the status of kernels that run: one that finds a wrong index or assertion traps. */
  void run(int status) {
    if (status == cudart.cudaErrorLaunchFailure) {
      throw new RunException(
          ("rank %s: a kernel stopped the run (unspecified launch failure): an index is out of"
                  + " range or an assertion false, for example; with the same inputs, the host"
                  + " backend names the op")
              .formatted(rank));
    }
    runtime(status, "the run");
  }

  void driver(int status, String call) {
    if (status != 0) {
      try (var text = new PointerPointer<BytePointer>(1)) {
        throw failed(
            call,
            cudart.cuGetErrorString(status, text) == 0
                ? text.get(BytePointer.class, 0).getString()
                : "error " + status);
      }
    }
  }

  void blas(int status, String call) {
    if (status != 0) {
      throw failed(call, cublas.cublasLtGetStatusString(status).getString());
    }
  }

  /** {@return a new handle of cuBLASLt, for the current GPU} */
  cublasLtContext createBlas() {
    var made = new cublasLtContext();
    blas(cublas.cublasLtCreate(made), "cublasLtCreate");
    return made;
  }

  void nccl(int status, String call) {
    if (status != nccl.ncclSuccess) {
      throw failed(call, nccl.ncclGetErrorString(status).getString());
    }
  }

  void nvrtc(int status, String call) {
    if (status != 0) {
      throw failed(call, nvrtc.nvrtcGetErrorString(status).getString());
    }
  }

  /** Calls cuDNN. */
  <T> T cudnn(Supplier<T> call) {
    try {
      return call.get();
    } catch (CudnnException e) {
      throw new RunException("rank %s: %s".formatted(rank, e.getMessage()));
    }
  }

  private RunException failed(String call, String reason) {
    return new RunException("rank %s: %s failed: %s".formatted(rank, call, reason));
  }
}
