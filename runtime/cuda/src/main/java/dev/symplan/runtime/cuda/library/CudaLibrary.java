package dev.symplan.runtime.cuda.library;

import dev.symplan.runtime.doctor.Machine;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/** The libraries of backend cuda, each after those that it needs itself. */
enum CudaLibrary {
  DRIVER("libcuda.so.1", "the driver's own", "cuDriverGetVersion"),
  RUNTIME("libcudart.so.13", "memory, streams and graphs", "cudaRuntimeGetVersion"),
  NVRTC("libnvrtc.so.13", "generated kernels", "nvrtcVersion"),
  BLAS_LT("libcublasLt.so.13", "products", "cublasLtGetVersion"),
  BLAS("libcublas.so.13", "the binding of products", "cublasGetProperty"),
  DNN("libcudnn.so.9", "fast attention and convolutions; optional", "cudnnGetVersion"),
  NCCL(Machine.NCCL, "symmetric memory and collectives", "ncclGetVersion");

  private final String soname;
  private final String use;
  private final String versionFunction;

  CudaLibrary(String soname, String use, String versionFunction) {
    this.soname = soname;
    this.use = use;
    this.versionFunction = versionFunction;
  }

  /** {@return whether the backend works without it} */
  boolean isOptional() {
    return this == DNN;
  }

  String soname() {
    return soname;
  }

  /** {@return its purpose, for people} */
  String use() {
    return use;
  }

  /** {@return a function that every such library has, unless it is a stub for linkers} */
  String versionFunction() {
    return versionFunction;
  }

  /** {@return the version that the library reports, as {@code 13.0}; empty if it reports none} */
  Optional<String> version(SharedLibrary library) {
    if (!library.has(versionFunction)) {
      return Optional.empty();
    }
    return switch (this) {
      case DRIVER, RUNTIME ->
          text(
              library.ask(versionFunction, SharedLibrary.RESULT).stream()
                  .flatMap(code -> IntStream.of(code / 1000, code % 1000 / 10)));
      case NVRTC -> text(nvrtc(library));
      case BLAS_LT, DNN -> text(thousands(library.count(versionFunction)));
      case BLAS ->
          text(
              IntStream.range(0, 3)
                  .flatMap(
                      part -> library.ask(versionFunction, part, SharedLibrary.RESULT).stream()));
      case NCCL ->
          text(
              nccl(library).stream()
                  .flatMap(code -> IntStream.of(code / 10_000, code / 100 % 100, code % 100)));
    };
  }

  /** {@return NCCL's version as {@code major * 10000 + minor * 100 + patch}} */
  static OptionalInt nccl(SharedLibrary library) {
    return library.ask(NCCL.versionFunction, SharedLibrary.RESULT);
  }

  /** {@return the newest CUDA that a driver supports, as {@code major * 1000 + minor * 10}} */
  static OptionalInt driver(SharedLibrary library) {
    return library.ask(DRIVER.versionFunction, SharedLibrary.RESULT);
  }

  private static IntStream nvrtc(SharedLibrary library) {
    try (var arena = Arena.ofConfined()) {
      var major = arena.allocate(ValueLayout.JAVA_INT);
      var minor = arena.allocate(ValueLayout.JAVA_INT);
      return library.call(NVRTC.versionFunction, major, minor) == 0
          ? IntStream.of(major.get(ValueLayout.JAVA_INT, 0), minor.get(ValueLayout.JAVA_INT, 0))
          : IntStream.empty();
    }
  }

  private static IntStream thousands(long code) {
    return IntStream.of((int) (code / 10_000), (int) (code / 100 % 100), (int) (code % 100));
  }

  private static Optional<String> text(IntStream parts) {
    var text = String.join(".", (Iterable<String>) parts.mapToObj(Integer::toString)::iterator);
    return text.isEmpty() ? Optional.empty() : Optional.of(text);
  }
}
