package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.runtime.cuda.library.SharedLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * Generated kernels, compiled for this machine's processor by its C++ compiler: one thread of a
 * block after the other, to where they wait for each other.
 */
final class EmulatedKernels {
  /** As in {@code emulation.cpp}. */
  private static final int TRAPPED = 2;

  private static final FunctionDescriptor LAUNCH =
      FunctionDescriptor.of(
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT);

  private static final Pattern CLUSTER = Pattern.compile("__cluster_dims__\\((\\d+), 1, 1\\)");

  private final Map<Kernel, MemorySegment> functions = new LinkedHashMap<>();
  private final MethodHandle launch;

  private EmulatedKernels(List<Kernel> kernels, SymbolLookup library) {
    for (int i = 0; i < kernels.size(); i++) {
      functions.put(kernels.get(i), library.findOrThrow("call" + i));
    }
    launch = Linker.nativeLinker().downcallHandle(library.findOrThrow("launch"), LAUNCH);
  }

  /** Skips the test where there is no compiler, and fails with what it says of a kernel. */
  static EmulatedKernels compile(Collection<Kernel> all) {
    var kernels = List.copyOf(new LinkedHashSet<>(all));
    return new EmulatedKernels(kernels, Emulation.compile("/emulation", kernels, text -> text));
  }

  private static int blocksOfCluster(String text) {
    var cluster = CLUSTER.matcher(text);
    return cluster.find() ? Integer.parseInt(cluster.group(1)) : 1;
  }

  /**
   * Runs a kernel to its end.
   *
   * @param backwards whether the last block and thread begin: nothing may depend on that
   * @throws IllegalStateException when a thread refuses to go on
   */
  void launch(Launch step, long[] words, boolean backwards) {
    var text = step.kernel().text();
    boolean meets = text.contains("__sync") || text.contains("__shfl");
    try (var arena = Arena.ofConfined()) {
      var arguments = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, words.length));
      MemorySegment.copy(words, 0, arguments, ValueLayout.JAVA_LONG, 0, words.length);
      int status =
          (int)
              launch.invokeExact(
                  Objects.requireNonNull(functions.get(step.kernel())),
                  meets ? 1 : 0,
                  step.blocks(),
                  blocksOfCluster(text),
                  step.threads(),
                  arguments,
                  backwards ? 1 : 0);
      if (status == TRAPPED) {
        throw new IllegalStateException("a trap of '%s'".formatted(step.label()));
      }
      assertThat(status).as("threads that wait for each other for ever%n%s", text).isZero();
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }
}
