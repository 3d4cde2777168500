package dev.symplan.runtime.cuda.library;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.runtime.cuda.library.LibrarySearch.Finding;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.Machine.Attempt;
import dev.symplan.runtime.doctor.Machine.Driver;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.cudnn;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.javacpp.Loader;

/**
 * Finds and loads the driver, CUDA's libraries and NCCL, without {@code LD_LIBRARY_PATH}.
 *
 * <p>The libraries are loaded by their files first. The bindings, which name them by {@code SONAME}
 * alone, then get those.
 */
public final class Libraries {

  /** Folders to look in before any other, as a path. */
  static final String FOLDERS = "symplan.cuda.libs";

  /** The CUDA of the libraries, as drivers count: {@code major * 1000 + minor * 10}. */
  private static final int OLDEST_CUDA = 13000;

  /** NCCL reads these when it is first called; the caller's own settings win. */
  static final ImmutableSortedMap<String, String> SETTINGS =
      ImmutableSortedMap.of(
          "NCCL_NVLS_ENABLE", "0",
          "NCCL_SINGLE_PROC_MEM_REG_ENABLE", "1",
          "NCCL_RUNTIME_CONNECT", "0");

  /**
   * The first NCCL with each function that the backend calls. The bindings look functions up when
   * they are first called, and one that is missing ends the process: so all are looked up before.
   */
  static final ImmutableMap<String, Integer> NCCL_FUNCTIONS =
      ImmutableMap.<String, Integer>builder()
          .put("ncclAllGather", 20000)
          .put("ncclAllReduce", 20000)
          .put("ncclAlltoAll", 22800)
          .put("ncclBroadcast", 20000)
          .put("ncclCommAbort", 20400)
          .put("ncclCommDestroy", 20000)
          .put("ncclCommGetAsyncError", 20400)
          .put("ncclCommInitRank", 20000)
          .put("ncclCommInitRankConfig", 21400)
          .put("ncclCommWindowDeregister", 22700)
          .put("ncclCommWindowRegister", 22700)
          .put("ncclGetErrorString", 20000)
          .put("ncclGetLastError", 21300)
          .put("ncclGetUniqueId", 20000)
          .put("ncclGetVersion", 20300)
          .put("ncclGroupEnd", 20000)
          .put("ncclGroupStart", 20000)
          .put("ncclMemAlloc", 21900)
          .put("ncclMemFree", 21900)
          .put("ncclRecv", 20700)
          .put("ncclReduceScatter", 20000)
          .put("ncclSend", 20700)
          .buildOrThrow();

  /**
   * The libraries of cuDNN that the binding needs, all of one version, each after those that it
   * needs.
   */
  private static final ImmutableList<String> CUDNN_PARTS =
      ImmutableList.of(
          "libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_adv.so.9", "libcudnn_cnn.so.9");

  private static final class Loaded {
    static final Libraries ONCE =
        new Libraries(
            LibrarySearch.forDriver(System.getProperty(FOLDERS, "")),
            LibrarySearch.forLibraries(System.getProperty(FOLDERS, ""), System.getenv()));

    static final Optional<String> PROBLEM = ONCE.load();
  }

  private static final class LoadedCudnn {
    static final boolean USABLE = problem().isEmpty() && ofProcess().loadCudnn();
  }

  private final LibrarySearch drivers;
  private final LibrarySearch libraries;
  private final Map<CudaLibrary, Finding> findings = new EnumMap<>(CudaLibrary.class);

  Libraries(LibrarySearch drivers, LibrarySearch libraries) {
    this.drivers = drivers;
    this.libraries = libraries;
  }

  /** Begins to load the libraries in the background. {@link #problem} waits for that. */
  public static void begin() {
    start(Libraries::problem);
  }

  /** {@return why CUDA cannot be used on this machine; empty if it can} */
  public static Optional<String> problem() {
    return Loaded.PROBLEM;
  }

  /** {@return whether there is a cuDNN that can be called} */
  public static boolean hasCudnn() {
    return LoadedCudnn.USABLE;
  }

  /** {@return the driver's library of management, which the backend does not need} */
  Finding management() {
    return drivers.find(Nvml.SONAME);
  }

  /** {@return the libraries of this process} */
  static Libraries ofProcess() {
    return Loaded.ONCE;
  }

  /** Looks for a library and loads it, the first time. */
  synchronized Finding find(CudaLibrary library) {
    return findings.computeIfAbsent(
        library,
        wanted -> (wanted == CudaLibrary.DRIVER ? drivers : libraries).find(wanted.soname()));
  }

  private Optional<String> load() {
    if (!isLinux()) {
      return Optional.of("runs on Linux only; this is " + System.getProperty("os.name"));
    }
    var driver = find(CudaLibrary.DRIVER).library();
    if (driver.isEmpty()) {
      return Optional.of("no NVIDIA driver was found: libcuda.so.1 cannot be loaded");
    }
    // The driver takes some time to begin, and the other libraries to be read.
    var others = CompletableFuture.supplyAsync(this::problemOfLibraries, Libraries::start);
    return driverProblem(driver.get()).or(others::join).or(Libraries::bind);
  }

  private static void start(Runnable task) {
    Thread.ofPlatform().daemon().name("symplan-libraries").start(task);
  }

  static boolean isLinux() {
    return System.getProperty("os.name").toLowerCase(Locale.ROOT).contains("linux");
  }

  /** Asks the driver itself: the bindings need all the libraries. */
  static Optional<String> driverProblem(SharedLibrary library) {
    return switch (NvidiaDriver.start(library)) {
      case NvidiaDriver.Unusable(var why) -> Optional.of(why);
      case NvidiaDriver.Started(var driver) -> {
        if (driver.gpus() == 0) {
          yield Optional.of("the NVIDIA driver found no GPU");
        }
        int cuda = CudaLibrary.driver(library).orElse(0);
        yield cuda >= OLDEST_CUDA
            ? Optional.empty()
            : Optional.of(
                "the NVIDIA driver is too old: it supports CUDA %s, but %s is needed"
                    .formatted(Driver.cudaVersion(cuda), Driver.cudaVersion(OLDEST_CUDA)));
      }
    };
  }

  /** {@return the fault of the libraries, the driver apart; empty if they have none} */
  Optional<String> problemOfLibraries() {
    return Stream.of(CudaLibrary.values())
        .filter(wanted -> wanted != CudaLibrary.DRIVER && !wanted.isOptional())
        .flatMap(
            wanted -> {
              var finding = find(wanted);
              return finding.library().isEmpty()
                  ? Stream.of(missing(wanted, finding))
                  : problemOf(wanted, finding.library().get()).stream()
                      .map(
                          problem ->
                              "%s %s (%s)"
                                  .formatted(
                                      wanted.soname(), problem, finding.library().get().file()));
            })
        .findFirst();
  }

  /** {@return why a library that was loaded cannot be used} */
  static Optional<String> problemOf(CudaLibrary wanted, SharedLibrary library) {
    if (!library.has(wanted.versionFunction())) {
      return Optional.of(stub(wanted.versionFunction()));
    }
    return switch (wanted) {
      case DRIVER, RUNTIME, NVRTC, BLAS_LT, BLAS, DNN -> Optional.empty();
      case NCCL -> ncclProblem(library);
    };
  }

  private static String missing(CudaLibrary wanted, Finding finding) {
    var refused =
        finding.looked().stream().filter(look -> !look.outcome().equals(Attempt.NONE)).toList();
    return refused.isEmpty()
        ? "%s was not found; name its folder with -D%s=DIR".formatted(wanted.soname(), FOLDERS)
        : "%s cannot be loaded: %s: %s"
            .formatted(wanted.soname(), refused.getFirst().place(), refused.getFirst().outcome());
  }

  private static String stub(String function) {
    return "has no %s: it is a stub or damaged".formatted(function);
  }

  private static Optional<String> ncclProblem(SharedLibrary library) {
    var version = CudaLibrary.nccl(library);
    if (version.isEmpty()) {
      return Optional.of("does not report its version");
    }
    if (version.getAsInt() < Diagnosis.OLDEST_NCCL) {
      return Optional.of(
          "%s is too old: %s or newer is needed"
              .formatted(CudaLibrary.NCCL.version(library).orElse(""), Diagnosis.oldestNccl()));
    }
    return NCCL_FUNCTIONS.keySet().stream()
        .filter(function -> !library.has(function))
        .findFirst()
        .map(Libraries::stub);
  }

  /** Java cannot change its own environment, but C can. */
  private static void setIfAbsent(String name, String value) {
    var linker = Linker.nativeLinker();
    try (var arena = Arena.ofConfined()) {
      var setenv =
          linker.downcallHandle(
              linker.defaultLookup().findOrThrow("setenv"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT,
                  ValueLayout.ADDRESS,
                  ValueLayout.ADDRESS,
                  ValueLayout.JAVA_INT));
      MemorySegment key = arena.allocateFrom(name);
      MemorySegment text = arena.allocateFrom(value);
      int status = (int) setenv.invokeExact(key, text, 0);
      if (status != 0) {
        throw new IllegalStateException("setenv " + name + " says " + status);
      }
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }

  private boolean loadCudnn() {
    var found = find(CudaLibrary.DNN).library();
    if (found.isEmpty() || problemOf(CudaLibrary.DNN, found.get()).isPresent()) {
      return false;
    }
    var file = Path.of(found.get().file()).toAbsolutePath();
    CUDNN_PARTS.forEach(part -> SharedLibrary.load(file.resolveSibling(part).toString()));
    try {
      Loader.load(cudnn.class);
      return true;
    } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
      return false;
    }
  }

  private static Optional<String> bind() {
    SETTINGS.forEach(Libraries::setIfAbsent);
    // Device memory is counted as the process's own, but is not a reason to refuse a few bytes.
    for (var limit : List.of("maxBytes", "maxPhysicalBytes")) {
      var property = "org.bytedeco.javacpp." + limit;
      if (System.getProperty(property) == null) {
        System.setProperty(property, "0");
      }
    }
    try {
      for (var binding : List.of(cudart.class, nvrtc.class, cublas.class, nccl.class)) {
        Loader.load(binding);
      }
      return Optional.empty();
    } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
      return Optional.of(
          "the bindings cannot be loaded: " + Objects.requireNonNullElse(e.getMessage(), "" + e));
    }
  }
}
