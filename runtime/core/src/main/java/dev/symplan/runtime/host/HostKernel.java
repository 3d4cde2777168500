package dev.symplan.runtime.host;

/** The host implementation of an op. */
@FunctionalInterface
public interface HostKernel {
  /**
   * Computes the results of one call into their memory.
   *
   * <p>The memory of an elementwise op's result may be that of an operand of the same layout.
   *
   * @throws RuntimeException when the values do not allow it; the session turns it into one error
   *     that names rank, op and source line
   */
  void run(HostCall call);

  /**
   * {@return the action that computes a call, any number of times, with all done that can be
   * before}
   */
  default Runnable prepare(HostCall call) {
    return () -> run(call);
  }
}
