package dev.symplan.runtime.cuda;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import java.io.File;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.javacpp.Loader;

/**
 * Finds and loads the driver, CUDA's libraries and NCCL, without {@code LD_LIBRARY_PATH}.
 *
 * <p>The libraries are loaded by their files first. The bindings, which name them by {@code SONAME}
 * alone, then get those.
 */
final class Libraries {

  /** Folders to look in before any other, as a path. */
  static final String FOLDERS = "symplan.cuda.libs";

  /** What the bindings call, each behind those that it needs itself. */
  private static final ImmutableList<String> NAMES =
      ImmutableList.of(
          "libcudart.so.13",
          "libnvrtc.so.13",
          "libcublasLt.so.13",
          "libcublas.so.13",
          "libnccl.so.2");

  /** The first version with symmetric kernels and copy-engine collectives. */
  private static final int OLDEST_NCCL = 22800;

  /** NCCL reads these when it is first called; the caller's own settings win. */
  private static final Map<String, String> SETTINGS =
      Map.of(
          "NCCL_NVLS_ENABLE", "0",
          "NCCL_SINGLE_PROC_MEM_REG_ENABLE", "1",
          "NCCL_RUNTIME_CONNECT", "0");

  private static final class Loaded {
    static final Libraries ONCE = new Libraries();
  }

  private final Map<String, String> found = new LinkedHashMap<>();
  private final Optional<String> problem;

  private Libraries() {
    this.problem = load();
  }

  /** {@return why CUDA cannot be used on this machine; empty if it can} */
  static Optional<String> problem() {
    return Loaded.ONCE.problem;
  }

  /** {@return the file of each library that was found, in the order of loading} */
  static Map<String, String> found() {
    return Loaded.ONCE.found;
  }

  private Optional<String> load() {
    if (!System.getProperty("os.name").toLowerCase(Locale.ROOT).contains("linux")) {
      return Optional.of("runs on Linux only, and this is " + System.getProperty("os.name"));
    }
    if (!opens("libcuda.so.1")) {
      return Optional.of("there is no NVIDIA driver: libcuda.so.1 cannot be loaded");
    }
    found.put("libcuda.so.1", "the system's");
    var devices = driverProblem();
    if (devices.isPresent()) {
      return devices;
    }
    var folders = folders(System.getProperty(FOLDERS, ""), System.getenv());
    for (var name : NAMES) {
      if (!loads(name, folders)) {
        return Optional.of(
            "%s was not found in %s; name its folder with -D%s=DIR"
                .formatted(name, folders.isEmpty() ? "any known place" : folders, FOLDERS));
      }
    }
    try {
      SETTINGS.forEach(Libraries::setIfAbsent);
      bind();
    } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
      return Optional.of("the bindings cannot be loaded: " + e.getMessage());
    }
    return ncclProblem();
  }

  private boolean loads(String name, List<Path> folders) {
    for (var folder : folders) {
      var file = folder.resolve(name);
      if (Files.exists(file) && opens(file.toString())) {
        found.put(name, file.toString());
        return true;
      }
    }
    if (opens(name)) {
      found.put(name, "the system's");
      return true;
    }
    return false;
  }

  /** Loads a library for as long as the process runs. */
  private static boolean opens(String library) {
    try {
      if (library.startsWith("/")) {
        SymbolLookup.libraryLookup(Path.of(library), Arena.global());
      } else {
        SymbolLookup.libraryLookup(library, Arena.global());
      }
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /** Asks the driver itself: the bindings need all the libraries. */
  private static Optional<String> driverProblem() {
    var driver = SymbolLookup.libraryLookup("libcuda.so.1", Arena.global());
    var linker = Linker.nativeLinker();
    try (var arena = Arena.ofConfined()) {
      var init =
          linker.downcallHandle(
              driver.findOrThrow("cuInit"),
              FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
      int status = (int) init.invokeExact(0);
      if (status != 0) {
        return Optional.of("the NVIDIA driver cannot be used: cuInit says " + status);
      }
      var count =
          linker.downcallHandle(
              driver.findOrThrow("cuDeviceGetCount"),
              FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
      var devices = arena.allocate(ValueLayout.JAVA_INT);
      status = (int) count.invokeExact(devices);
      return status == 0 && devices.get(ValueLayout.JAVA_INT, 0) > 0
          ? Optional.empty()
          : Optional.of("the NVIDIA driver knows of no GPU");
    } catch (Throwable e) {
      return Optional.of("the NVIDIA driver cannot be called: " + e);
    }
  }

  /**
   * {@return where to look for libraries, the most explicit first}
   *
   * @param explicit folders as the caller gave them
   */
  static ImmutableList<Path> folders(String explicit, Map<String, String> environment) {
    Set<Path> folders = new LinkedHashSet<>();
    split(explicit).forEach(folder -> folders.add(Path.of(folder)));
    for (var variable : List.of("CUDA_HOME", "CUDA_PATH")) {
      split(environment.getOrDefault(variable, ""))
          .forEach(home -> folders.addAll(toolkit(Path.of(home))));
    }
    for (var root : pythonRoots(environment)) {
      matching(root.resolve("lib"), "python3*")
          .forEach(
              lib ->
                  List.of("site-packages", "dist-packages")
                      .forEach(
                          packages ->
                              matching(lib.resolve(packages).resolve("nvidia"), "*")
                                  .forEach(wheel -> folders.add(wheel.resolve("lib")))));
    }
    matching(Path.of("/usr/local"), "cuda*").forEach(home -> folders.addAll(toolkit(home)));
    return folders.stream().filter(Files::isDirectory).collect(ImmutableList.toImmutableList());
  }

  private static List<Path> toolkit(Path home) {
    return List.of(home.resolve("lib64"), home.resolve("lib"));
  }

  /** Environments that are active, then those of the interpreters on the path. */
  private static List<Path> pythonRoots(Map<String, String> environment) {
    var roots = new ArrayList<Path>();
    for (var variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
      split(environment.getOrDefault(variable, "")).forEach(root -> roots.add(Path.of(root)));
    }
    for (var folder : split(environment.getOrDefault("PATH", ""))) {
      var bin = Path.of(folder);
      if (bin.getParent() != null && Files.exists(bin.resolve("python3"))) {
        roots.add(bin.getParent());
      }
    }
    return roots;
  }

  private static Iterable<String> split(String path) {
    return Splitter.on(File.pathSeparatorChar).omitEmptyStrings().split(path);
  }

  private static List<Path> matching(Path folder, String glob) {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    var found = new ArrayList<Path>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, glob)) {
      entries.forEach(found::add);
    } catch (IOException e) {
      return List.of();
    }
    found.sort(null);
    return found;
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
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }

  private static void bind() {
    // Device memory is counted as the process's own, which is no reason to refuse a few bytes.
    for (var limit : List.of("maxBytes", "maxPhysicalBytes")) {
      var property = "org.bytedeco.javacpp." + limit;
      if (System.getProperty(property) == null) {
        System.setProperty(property, "0");
      }
    }
    for (var binding : List.of(cudart.class, nvrtc.class, cublas.class, nccl.class)) {
      Loader.load(binding);
    }
  }

  /** A function that NCCL lacks ends the process when it is called: so its version is asked. */
  private static Optional<String> ncclProblem() {
    var version = new int[1];
    int status = nccl.ncclGetVersion(version);
    if (status != nccl.ncclSuccess) {
      return Optional.of("ncclGetVersion says " + status);
    }
    return version[0] >= OLDEST_NCCL
        ? Optional.empty()
        : Optional.of(
            "NCCL %d.%d.%d is too old: 2.28 or newer is needed"
                .formatted(version[0] / 10000, version[0] / 100 % 100, version[0] % 100));
  }
}
