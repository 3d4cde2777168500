package dev.symplan.runtime.cuda;

import dev.symplan.runtime.cuda.Architecture.Target;
import dev.symplan.runtime.failure.RunException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.cuda.nvrtc._nvrtcProgram;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * Compiles kernels, each text once for an architecture as long as the process runs. NVRTC itself
 * keeps what it compiled on disk, for other processes.
 */
final class KernelCompiler {
  private static final Map<Target, CompletableFuture<byte[]>> COMPILED = new ConcurrentHashMap<>();

  /** Its own: those that others share may all be waiting for a session to open. */
  private static final ExecutorService THREADS = threads();

  private KernelCompiler() {}

  private static ExecutorService threads() {
    int count = Runtime.getRuntime().availableProcessors();
    var threads =
        new ThreadPoolExecutor(
            count,
            count,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofPlatform().daemon().name("symplan-nvrtc-", 0).factory());
    threads.allowCoreThreadTimeOut(true);
    return threads;
  }

  /** Begins to compile kernels on other threads. A failure shows when a kernel is asked for. */
  static void begin(Iterable<Target> targets, Check check) {
    targets.forEach(target -> started(target, check));
  }

  /** {@return the machine code of a kernel} */
  static byte[] compile(Target target, Check check) {
    var started = started(target, check);
    try {
      return started.join();
    } catch (CompletionException e) {
      COMPILED.remove(target, started);
      throw e.getCause() instanceof RunException failed ? failed : e;
    }
  }

  private static CompletableFuture<byte[]> started(Target target, Check check) {
    return COMPILED.computeIfAbsent(
        target, key -> CompletableFuture.supplyAsync(() -> compiled(key, check), THREADS));
  }

  private static byte[] compiled(Target target, Check check) {
    var options =
        List.of("--gpu-architecture=" + target.architecture(), "--std=c++17", "--fmad=false");
    var program = new _nvrtcProgram();
    try (var text = new BytePointer(target.kernel().text());
        var name = new BytePointer("symplan.cu");
        var pointers = new PointerPointer<BytePointer>(options.size())) {
      check.nvrtc(
          nvrtc.nvrtcCreateProgram(
              program, text, name, 0, (PointerPointer<?>) null, (PointerPointer<?>) null),
          "nvrtcCreateProgram");
      var kept = options.stream().map(BytePointer::new).toList();
      for (int i = 0; i < kept.size(); i++) {
        pointers.put(i, kept.get(i));
      }
      int status = nvrtc.nvrtcCompileProgram(program, options.size(), pointers);
      kept.forEach(BytePointer::close);
      if (status != 0) {
        throw new RunException(
            "a generated kernel does not compile: %s\n%s"
                .formatted(log(program, check), target.kernel().text()));
      }
      try (var size = new SizeTPointer(1)) {
        check.nvrtc(nvrtc.nvrtcGetCUBINSize(program, size), "nvrtcGetCUBINSize");
        var code = new byte[Math.toIntExact(size.get())];
        check.nvrtc(nvrtc.nvrtcGetCUBIN(program, code), "nvrtcGetCUBIN");
        return code;
      }
    } finally {
      nvrtc.nvrtcDestroyProgram(program);
    }
  }

  private static String log(_nvrtcProgram program, Check check) {
    try (var size = new SizeTPointer(1)) {
      check.nvrtc(nvrtc.nvrtcGetProgramLogSize(program, size), "nvrtcGetProgramLogSize");
      try (var log = new BytePointer(size.get())) {
        check.nvrtc(nvrtc.nvrtcGetProgramLog(program, log), "nvrtcGetProgramLog");
        return log.getString();
      }
    }
  }
}
