package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.Kernel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Generated kernels, compiled for this machine's processor by its C++ compiler: one thread of a
 * block after the other, to where they wait for each other.
 */
final class EmulatedKernels {
  private static final FunctionDescriptor LAUNCH =
      FunctionDescriptor.of(
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT);

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
    assumeTrue(run(List.of("g++", "--version")).startsWith("0\n"), "no g++ on the PATH");
    var kernels = List.copyOf(new LinkedHashSet<>(all));
    var text = new StringBuilder(prelude());
    for (int i = 0; i < kernels.size(); i++) {
      text.append("namespace n%d {\n%s}\n".formatted(i, text(kernels.get(i), i)));
      text.append(
          """
          extern "C" void call%1$d(const long long* words) {
            n%1$d::Args args;
            memcpy(&args, words, sizeof(args));
            n%1$d::kernel%1$d(args);
          }
          """
              .formatted(i));
    }
    try {
      var folder = Files.createTempDirectory("symplan-emulated");
      var source = Files.writeString(folder.resolve("kernels.cpp"), text);
      var library = folder.resolve("kernels.so");
      var said =
          run(
              List.of(
                  "g++",
                  "-std=c++17",
                  "-O1",
                  "-w",
                  "-ffp-contract=off",
                  "-shared",
                  "-fPIC",
                  "-o",
                  library.toString(),
                  source.toString()));
      assertThat(said).startsWith("0\n");
      var loaded =
          new EmulatedKernels(kernels, SymbolLookup.libraryLookup(library, Arena.global()));
      Files.delete(source);
      Files.delete(library);
      Files.delete(folder);
      return loaded;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String prelude() {
    try (var in = EmulatedKernels.class.getResourceAsStream("/emulation.hpp")) {
      return new String(Objects.requireNonNull(in).readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Each in a namespace of its own, without machine instructions. */
  private static String text(Kernel kernel, int number) {
    return kernel
        .text()
        .replace(Kernel.ENTRY, "kernel" + number)
        .replace(
            "asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));",
            "bits = rounded_to_bf16(value);")
        .replace(
            "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(value) : \"h\"(bits));",
            "value = widened_f16(bits);")
        .replace(
            "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));",
            "bits = rounded_to_f16(value);");
  }

  /**
   * Runs a kernel to its end.
   *
   * @param backwards whether the last block and thread begin: nothing may depend on that
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
                  step.threads(),
                  arguments,
                  backwards ? 1 : 0);
      assertThat(status).as("threads that wait for each other for ever%n%s", text).isZero();
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }

  /** The exit code and, on the next lines, what was said. */
  private static String run(List<String> command) {
    try {
      var process = new ProcessBuilder(command).redirectErrorStream(true).start();
      var said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return process.waitFor() + "\n" + said;
    } catch (IOException e) {
      return "127\n" + e.getMessage();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "130\n";
    }
  }
}
