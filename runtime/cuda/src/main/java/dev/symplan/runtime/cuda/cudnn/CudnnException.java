package dev.symplan.runtime.cuda.cudnn;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.bytedeco.cuda.global.cudnn;

/** A call of cuDNN that failed, with what cuDNN says about it. */
public final class CudnnException extends RuntimeException {

  private static final long serialVersionUID = 1;

  private static final int TEXT_BYTES = 1024;

  private final int status;

  private CudnnException(int status, String message) {
    super(message);
    this.status = status;
  }

  static CudnnException refused(String message) {
    return new CudnnException(cudnn.CUDNN_STATUS_NOT_SUPPORTED, message);
  }

  static void check(int status, String call) {
    if (status != cudnn.CUDNN_STATUS_SUCCESS) {
      var text = new byte[TEXT_BYTES];
      cudnn.cudnnGetLastErrorString(text, TEXT_BYTES);
      int end = 0;
      while (end < text.length && text[end] != 0) {
        end++;
      }
      throw new CudnnException(
          status,
          "%s failed: %s: %s"
              .formatted(
                  call,
                  cudnn.cudnnGetErrorString(status).getString(),
                  new String(Arrays.copyOf(text, end), StandardCharsets.UTF_8).strip()));
    }
  }

  /** {@return whether cuDNN has nothing that does this, or does not want this form of it} */
  public boolean isRefusal() {
    return status / 1000 == cudnn.CUDNN_STATUS_NOT_SUPPORTED / 1000
        || status / 1000 == cudnn.CUDNN_STATUS_BAD_PARAM / 1000;
  }
}
