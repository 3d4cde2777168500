package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.failure.RunException;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.stream.Stream;

/** Executes plans. {@link ServiceLoader} finds all backends. */
public interface Backend {

  /** The name of the backend that works everywhere. */
  String HOST = "host";

  /** {@return the name that {@code --backend} takes} */
  String name();

  /**
   * {@return the variants of collectives that it carries out; planners choose among these}
   *
   * @param multicast whether it may use NVLink multicast ({@link SessionOptions#multicast})
   */
  default BackendVariants variants(boolean multicast) {
    return BackendVariants.all(name());
  }

  /**
   * Begins in the background what takes time and needs no plan, such as loading libraries. Calling
   * it before a plan is made or read lets a session open sooner. Failures show in {@link
   * #unavailable}.
   */
  default void begin() {}

  /** {@return why it cannot be used on this machine; empty if it can} */
  Optional<String> unavailable();

  /**
   * {@return a need of the plan that this machine does not meet, with the line and the command that
   * plans it anew; empty if it meets all that can be checked before memory is allocated} Asked only
   * where the backend can be used, and has the plan's variants.
   */
  default Optional<String> lacks(Plan plan, SessionOptions options) {
    return Optional.empty();
  }

  /**
   * Looks for ops that have no implementation here. It allocates nothing, and asks no other
   * process.
   *
   * @throws RunException for the first one, with its line
   */
  default void requireOps(Executable executable) {}

  /**
   * {@return the bytes in use of each rank's device, by whomever, as its driver counts them; none
   * if the backend has no devices} That a process uses a device at all takes memory, too, which the
   * first call includes. So what a session takes is the difference between two calls.
   *
   * @throws RunException when there are not so many devices, or they do not answer
   */
  default ImmutableList<Long> memoryInUse(int ranks) {
    return ImmutableList.of();
  }

  /** {@return whether each rank of a session may run in a process of its own} */
  default boolean canSpanProcesses() {
    return false;
  }

  /**
   * Prepares an executable; {@link Session#open} calls this.
   *
   * @throws RunException when memory or an op's implementation is missing
   */
  default Session open(Executable executable) {
    return open(executable, SessionOptions.DEFAULT);
  }

  /**
   * Prepares an executable.
   *
   * @throws RunException when memory or an op's implementation is missing, or the other processes
   *     do not join in time
   */
  Session open(Executable executable, SessionOptions options);

  /** {@return the backend with this name} */
  static Optional<Backend> ofName(String name) {
    return all().filter(backend -> backend.name().equals(name)).findFirst();
  }

  /** {@return every backend of this installation} */
  static Stream<Backend> all() {
    return ServiceLoader.load(Backend.class).stream().map(ServiceLoader.Provider::get);
  }
}
