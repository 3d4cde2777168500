package dev.symplan.runtime.cuda.library;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.Streams;
import dev.symplan.runtime.doctor.Machine.Attempt;
import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Looks for libraries where CUDA, Python environments and people put them, and where the loader
 * does: in {@code LD_LIBRARY_PATH} and the cache of {@code ldconfig}.
 *
 * @param before folders that come before the loader's, the most explicit first
 * @param after folders that come after them
 */
record LibrarySearch(ImmutableList<Path> before, ImmutableList<Path> after) {

  /** The name in an {@link Attempt} for the places that only the loader knows. */
  static final String LOADER = "the loader's own places";

  /** Folders in which some cloud machines and less common systems have the driver. */
  private static final ImmutableList<Path> DRIVERS =
      ImmutableList.of(
          Path.of("/usr/local/nvidia/lib64"),
          Path.of("/usr/lib/wsl/lib"),
          Path.of("/run/opengl-driver/lib"));

  /**
   * The result of a search.
   *
   * @param library empty if none can be loaded
   * @param looked where it was not, before it was found
   */
  record Finding(Optional<SharedLibrary> library, ImmutableList<Attempt> looked) {}

  /**
   * {@return where to look for CUDA's libraries and NCCL}
   *
   * @param explicit folders as the caller gave them; they stay even if they are not there, to be
   *     reported
   */
  static LibrarySearch forLibraries(String explicit, Map<String, String> environment) {
    Set<Path> folders = new LinkedHashSet<>();
    for (var variable : List.of("CUDA_HOME", "CUDA_PATH")) {
      split(environment.getOrDefault(variable, ""))
          .forEach(home -> folders.addAll(toolkit(Path.of(home))));
    }
    for (var root : pythonRoots(environment)) {
      folders.addAll(wheels(root));
    }
    matching(Path.of("/usr/local"), "cuda*").forEach(home -> folders.addAll(toolkit(home)));
    return new LibrarySearch(distinct(named(explicit), folders), ImmutableList.of());
  }

  /** {@return where to look for what comes with the driver} */
  static LibrarySearch forDriver(String explicit) {
    return new LibrarySearch(
        distinct(named(explicit), Set.of()), distinct(ImmutableList.of(), DRIVERS));
  }

  private static ImmutableList<Path> named(String explicit) {
    return Streams.stream(split(explicit)).map(Path::of).collect(ImmutableList.toImmutableList());
  }

  /** {@return the named folders, then the others that exist, each under one name only} */
  private static ImmutableList<Path> distinct(List<Path> named, Collection<Path> others) {
    var seen = new HashSet<Path>();
    return Stream.concat(named.stream(), others.stream().filter(Files::isDirectory))
        .filter(folder -> seen.add(real(folder)))
        .collect(ImmutableList.toImmutableList());
  }

  private static Path real(Path folder) {
    try {
      return folder.toRealPath();
    } catch (IOException e) {
      return folder;
    }
  }

  /** Loads the first library of that name which can be loaded. */
  Finding find(String soname) {
    var looked = ImmutableList.<Attempt>builder();
    var library =
        load(soname, before, looked)
            .or(() -> load(soname, looked))
            .or(() -> load(soname, after, looked));
    return new Finding(library, looked.build());
  }

  private static Optional<SharedLibrary> load(
      String soname, List<Path> folders, ImmutableList.Builder<Attempt> looked) {
    for (var folder : folders) {
      var file = folder.resolve(soname);
      if (!Files.exists(file)) {
        looked.add(
            new Attempt(
                folder.toString(), Files.isDirectory(folder) ? Attempt.NONE : "no such folder"));
        continue;
      }
      switch (SharedLibrary.load(file.toString())) {
        case SharedLibrary.Loaded(var library) -> {
          return Optional.of(library);
        }
        case SharedLibrary.Refused(var why) ->
            looked.add(new Attempt(folder.toString(), withoutPath(why, file)));
      }
    }
    return Optional.empty();
  }

  private static Optional<SharedLibrary> load(
      String soname, ImmutableList.Builder<Attempt> looked) {
    return switch (SharedLibrary.load(soname)) {
      case SharedLibrary.Loaded(var library) -> Optional.of(library);
      case SharedLibrary.Refused(var why) -> {
        boolean none = why.startsWith(soname + ": ") && why.contains("No such file");
        looked.add(new Attempt(LOADER, none ? Attempt.NONE : why));
        yield Optional.empty();
      }
    };
  }

  /** The loader begins with the file, which the place already names. */
  private static String withoutPath(String why, Path file) {
    var prefix = file + ": ";
    return why.startsWith(prefix) ? why.substring(prefix.length()) : why;
  }

  private static List<Path> toolkit(Path home) {
    return List.of(home.resolve("lib64"), home.resolve("lib"));
  }

  /** The folders of NVIDIA's wheels: one a library, or one for all of a CUDA. */
  private static List<Path> wheels(Path root) {
    return matching(root.resolve("lib"), "python3*").stream()
        .flatMap(
            lib ->
                List.of("site-packages", "dist-packages").stream()
                    .flatMap(name -> matching(lib.resolve(name).resolve("nvidia"), "*").stream()))
        .map(wheel -> wheel.resolve("lib"))
        .toList();
  }

  /** Environments that are active, those of the interpreters on the path, then the usual ones. */
  private static Set<Path> pythonRoots(Map<String, String> environment) {
    var roots = new LinkedHashSet<Path>();
    for (var variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
      split(environment.getOrDefault(variable, "")).forEach(root -> roots.add(Path.of(root)));
    }
    for (var folder : split(environment.getOrDefault("PATH", ""))) {
      var bin = Path.of(folder);
      if (bin.getParent() != null && Files.exists(bin.resolve("python3"))) {
        roots.add(bin.getParent());
      }
    }
    split(environment.getOrDefault("HOME", "")).forEach(home -> roots.add(Path.of(home, ".local")));
    roots.add(Path.of("/usr/local"));
    roots.add(Path.of("/usr"));
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
}
