package dev.symplan.runtime.cuda.library;

import dev.symplan.ir.testkit.Tools;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/** Makes libraries of C, with just what a test wants them to have. */
final class FakeLibraries {
  static final String NCCL_FUNCTIONS =
      Libraries.NCCL_FUNCTIONS.keySet().stream()
          .filter(name -> !name.equals("ncclGetVersion"))
          .map(name -> "int %s() { return 0; }\n".formatted(name))
          .collect(Collectors.joining());

  private FakeLibraries() {}

  static String ncclVersion(int code) {
    return "int ncclGetVersion(int* v) { *v = %s; return 0; }\n".formatted(code);
  }

  /** Compiles a library into a folder; the test is skipped where there is no C compiler. */
  static void compile(Path folder, String soname, String code) throws Exception {
    Tools.assumeInstalled("cc");
    Files.writeString(folder.resolve(soname + ".c"), code);
    Tools.run(folder, List.of("cc", "-w", "-shared", "-fPIC", "-o", soname, soname + ".c"));
  }

  /** All of CUDA's libraries in a version, NCCL apart. */
  static void compileCuda(Path folder) throws Exception {
    compile(
        folder, "libcudart.so.13", "int cudaRuntimeGetVersion(int* v) { *v = 13010; return 0; }");
    compile(
        folder,
        "libnvrtc.so.13",
        "int nvrtcVersion(int* a, int* b) { *a = 13; *b = 1; return 0; }");
    compile(folder, "libcublasLt.so.13", "unsigned long cublasLtGetVersion() { return 130102; }");
    compile(
        folder,
        "libcublas.so.13",
        "int cublasGetProperty(int p, int* v) { *v = p == 0 ? 13 : p; return 0; }");
  }

  /** A file that exists but is not a library. */
  static void damaged(Path folder, String soname) throws IOException {
    Files.writeString(
        folder.resolve(soname), "this is not a library, though it has the name of one");
  }
}
