package dev.symplan.runtime.doctor;

import com.google.common.collect.ImmutableList;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;

/**
 * The facts about one host, from its driver and libraries.
 *
 * @param system operating system and architecture
 * @param driver empty if no NVIDIA driver was found
 * @param gpus in the driver's order, which is that of ranks
 * @param links from each GPU to each other
 * @param libraries the libraries of backend cuda in the order of loading, found or not
 * @param settings variables that the libraries read, by name
 * @param problem why backend cuda cannot be used; empty if it can
 */
public record Machine(
    String system,
    Optional<Driver> driver,
    ImmutableList<Gpu> gpus,
    ImmutableList<Link> links,
    ImmutableList<Library> libraries,
    ImmutableList<Setting> settings,
    Optional<String> problem) {

  /** The {@code SONAME} of NCCL. */
  public static final String NCCL = "libnccl.so.2";

  public Machine {
    for (int i = 0; i < gpus.size(); i++) {
      if (gpus.get(i).index() != i) {
        throw new IllegalArgumentException("GPU %s is at %s".formatted(gpus.get(i).index(), i));
      }
    }
    for (var link : links) {
      if (link.from() >= gpus.size() || link.to() >= gpus.size()) {
        throw new IllegalArgumentException("%s of %s GPUs".formatted(link, gpus.size()));
      }
    }
  }

  /** {@return a machine with only this property known} */
  public static Machine without(String problem) {
    return new Machine(
        thisSystem(),
        Optional.empty(),
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.of(),
        Optional.of(problem));
  }

  /** {@return for example {@code Linux amd64}} */
  public static String thisSystem() {
    return System.getProperty("os.name") + " " + System.getProperty("os.arch");
  }

  /**
   * {@return NCCL's version as {@code major * 10000 + minor * 100 + patch}; empty if it was not
   * found or does not report one}
   */
  public OptionalInt nccl() {
    return libraries.stream()
        .filter(library -> library.name().equals(NCCL))
        .flatMap(library -> library.version().stream())
        .mapToInt(Machine::code)
        .findFirst();
  }

  private static int code(String version) {
    int code = 0;
    for (var part : version.split("\\.", -1)) {
      code = code * 100 + Integer.parseInt(part);
    }
    return code;
  }

  /** {@return the value of a setting that is in force} */
  public Optional<Setting> setting(String name) {
    return settings.stream().filter(setting -> setting.name().equals(name)).findFirst();
  }

  /** {@return the way from one GPU to another, if the driver reports it} */
  public Optional<Link> link(int from, int to) {
    return links.stream().filter(link -> link.from() == from && link.to() == to).findFirst();
  }

  /**
   * The NVIDIA driver.
   *
   * @param version as {@code 580.159.03}; empty if only CUDA's version is known
   * @param cuda the newest CUDA that it supports, as {@code major * 1000 + minor * 10}
   */
  public record Driver(Optional<String> version, int cuda) {

    /** {@return for example {@code 13.0}} */
    public String cudaVersion() {
      return cudaVersion(cuda);
    }

    /** {@return the same of any version, given as {@link #cuda} is} */
    public static String cudaVersion(int cuda) {
      return "%s.%s".formatted(cuda / 1000, cuda % 1000 / 10);
    }
  }

  /**
   * One GPU.
   *
   * @param memoryBytes of device memory
   * @param capability the compute capability as {@code major * 10 + minor}, as in sm_90
   * @param multiprocessors how many SMs
   * @param copyEngines that work beside kernels
   * @param virtualMemory whether memory can be mapped by handles, which symmetric memory needs
   * @param fileHandles whether such memory can go to another process as a file descriptor
   * @param fabricHandles the same as a fabric handle, through which other hosts get it
   * @param multicast whether the GPU can take part in NVLink multicast
   */
  public record Gpu(
      int index,
      String name,
      long memoryBytes,
      int capability,
      int multiprocessors,
      int copyEngines,
      boolean virtualMemory,
      boolean fileHandles,
      boolean fabricHandles,
      boolean multicast) {}

  /**
   * One GPU's way to another.
   *
   * @param peerAccess whether kernels and copies of {@code from} reach the memory of {@code to}
   * @param atomics whether all atomic operations work across it
   * @param nvlinks empty if nothing reports them
   */
  public record Link(
      int from, int to, boolean peerAccess, boolean atomics, Optional<NvLinks> nvlinks) {
    public Link {
      if (from < 0 || to < 0 || from == to) {
        throw new IllegalArgumentException("a link from GPU %s to GPU %s".formatted(from, to));
      }
    }
  }

  /**
   * The NVLinks between two GPUs, or of one to the switch through which it reaches the other.
   *
   * @param count how many are up; 0 if there are none
   * @param rate GB/s of each in each direction, from the driver; empty if it does not say
   */
  public record NvLinks(int count, OptionalDouble rate) {
    public NvLinks {
      if (count < 0) {
        throw new IllegalArgumentException(count + " NVLinks");
      }
    }
  }

  /**
   * A library, found or not.
   *
   * @param name its {@code SONAME}
   * @param use its purpose
   * @param file where it was loaded from; empty if it was not
   * @param version as it reports it; empty if it does not
   * @param problem why what was loaded cannot be used
   * @param looked the places that did not have it, with the reason
   */
  public record Library(
      String name,
      String use,
      Optional<String> file,
      Optional<String> version,
      Optional<String> problem,
      ImmutableList<Attempt> looked) {}

  /**
   * A place where a library was searched for but not found.
   *
   * @param outcome the reason why the library was not taken from there
   */
  public record Attempt(String place, String outcome) {

    /** The outcome if no such library exists. */
    public static final String NONE = "none";
  }

  /**
   * A variable of the environment, or of a file that NCCL reads beside it.
   *
   * @param source the place that sets it: {@link #ENVIRONMENT}, {@link #SYMPLAN} or a file
   */
  public record Setting(String name, String value, String source) {
    public static final String ENVIRONMENT = "environment";

    /** Symplan, as the caller does not. */
    public static final String SYMPLAN = "Symplan";
  }
}
