package dev.symplan.runtime.host;

/**
 * A call that the values of its tensors do not allow, such as an index out of range. The message
 * names the value; the caller of the kernel adds op and source line.
 */
public final class HostKernelException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public HostKernelException(String message) {
    super(message);
  }
}
