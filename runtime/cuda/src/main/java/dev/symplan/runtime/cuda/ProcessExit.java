package dev.symplan.runtime.cuda;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The end of a process whose GPU does not stop: NCCL's symmetric kernels (2.28.9) do not look
 * whether their communicator is aborted, and the driver, which waits for them when a process exits
 * by itself, never comes back. The operating system's end of a process stops them.
 */
final class ProcessExit {
  private static boolean willSkip;

  private ProcessExit() {}

  /**
   * Has this process exit, when it does, without what libraries have registered for that, and with
   * the same status: Java's shutdown hooks run before. Does nothing if the C library has no {@code
   * on_exit}, as glibc has.
   */
  static synchronized void skipLibraries() {
    var linker = Linker.nativeLinker();
    var onExit = linker.defaultLookup().find("on_exit");
    var exit = linker.defaultLookup().find("_exit");
    if (willSkip || onExit.isEmpty() || exit.isEmpty()) {
      return;
    }
    var register =
        linker.downcallHandle(
            onExit.get(),
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
    try {
      // The last that is registered is called first, with the status: it is _exit itself.
      willSkip = (int) register.invokeExact(exit.get(), MemorySegment.NULL) == 0;
    } catch (Throwable e) {
      throw new AssertionError("on_exit", e);
    }
  }
}
