package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.ChildProcess;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

@EnabledOnOs(OS.LINUX)
class ProcessExitTest {

  /** A process that, when it exits, waits for ever, as one does whose GPU does not stop. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) throws Throwable {
      var linker = Linker.nativeLinker();
      var libc = linker.defaultLookup();
      var register =
          linker.downcallHandle(
              libc.findOrThrow("on_exit"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
      int _ = (int) register.invokeExact(libc.findOrThrow("pause"), MemorySegment.NULL);
      ProcessExit.skipLibraries();
      Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
      System.exit(4);
    }
  }

  @Test
  void keepsTheStatusAndTheHooks() throws Exception {
    var child = ChildProcess.start(Child.class, Map.of());
    try {
      assertThat(child.process().waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(child.process().exitValue()).isEqualTo(4);
      assertThat(child.rest()).isEqualTo("hook\n");
    } finally {
      child.process().destroyForcibly();
    }
  }
}
