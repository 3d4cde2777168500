package dev.symplan.runtime.cuda;

import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.runtime.failure.RunException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.cuda.nvrtc._nvrtcProgram;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;

/** Compiles kernels, each text once for an architecture as long as the process runs. */
final class KernelCompiler {
  private record Key(Kernel kernel, String architecture) {}

  private static final Map<Key, byte[]> COMPILED = new ConcurrentHashMap<>();

  private KernelCompiler() {}

  /**
   * {@return the machine code of a kernel}
   *
   * @param architecture as "sm_90"; "sm_90a" has the instructions of Hopper GPUs alone
   */
  static byte[] compile(Kernel kernel, String architecture, Check check) {
    return COMPILED.computeIfAbsent(new Key(kernel, architecture), key -> compile(key, check));
  }

  private static byte[] compile(Key key, Check check) {
    var options =
        List.of("--gpu-architecture=" + key.architecture(), "--std=c++17", "--fmad=false");
    var program = new _nvrtcProgram();
    try (var text = new BytePointer(key.kernel().text());
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
                .formatted(log(program, check), key.kernel().text()));
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
