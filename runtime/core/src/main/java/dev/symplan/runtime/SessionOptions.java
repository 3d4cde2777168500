package dev.symplan.runtime;

import dev.symplan.runtime.launch.Launch;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Options of a session.
 *
 * @param timeout how long a rank waits for others before the run is given up, at most {@link
 *     #LONGEST_TIMEOUT}; empty for the backend's own
 * @param launch whether this process has all ranks or one, where no world says so
 * @param world the processes that have one rank each, which the session does not close
 * @param multicast whether it may make NVLink multicast objects, if the plan has such variants. A
 *     plan may come from elsewhere, so whoever runs it confirms this
 * @param products how the algorithms of products are picked, the same in all processes
 * @param callerMemory whether the caller {@linkplain Session#bind binds} memory before the first
 *     run, so that the session needs none for external inputs and outputs
 * @param dependentLaunches whether kernels on GPUs may begin while the kernel before them still
 *     runs, and wait for it themselves (programmatic dependent launch)
 * @param device which of the GPUs that this process sees its only rank uses; empty for the one that
 *     the launcher implies, or the first
 */
public record SessionOptions(
    Optional<Duration> timeout,
    Launch launch,
    Optional<World> world,
    boolean multicast,
    ProductAlgorithms products,
    boolean callerMemory,
    boolean dependentLaunches,
    OptionalInt device) {

  /** The longest timeout; longer ones count as this one. */
  public static final Duration LONGEST_TIMEOUT = Duration.ofSeconds(1_000_000);

  /**
   * The backend's timeout, and what the environment says about processes; no multicast; products by
   * the fastest algorithms; kernels that begin as early as they may.
   */
  public static final SessionOptions DEFAULT =
      new SessionOptions(
          Optional.empty(),
          Launch.AUTO,
          Optional.empty(),
          false,
          ProductAlgorithms.TIMED,
          false,
          true,
          OptionalInt.empty());

  public SessionOptions {
    if (timeout.isPresent() && !timeout.get().isPositive()) {
      throw new IllegalArgumentException("a timeout of " + timeout.get());
    }
    timeout = timeout.map(most -> most.compareTo(LONGEST_TIMEOUT) > 0 ? LONGEST_TIMEOUT : most);
    if (device.isPresent() && device.getAsInt() < 0) {
      throw new IllegalArgumentException("device " + device.getAsInt());
    }
  }

  public SessionOptions withTimeout(Duration newTimeout) {
    return new SessionOptions(
        Optional.of(newTimeout),
        launch,
        world,
        multicast,
        products,
        callerMemory,
        dependentLaunches,
        device);
  }

  public SessionOptions withLaunch(Launch newLaunch) {
    return new SessionOptions(
        timeout, newLaunch, world, multicast, products, callerMemory, dependentLaunches, device);
  }

  public SessionOptions withWorld(World newWorld) {
    return new SessionOptions(
        timeout,
        launch,
        Optional.of(newWorld),
        multicast,
        products,
        callerMemory,
        dependentLaunches,
        device);
  }

  public SessionOptions withMulticast(boolean value) {
    return new SessionOptions(
        timeout, launch, world, value, products, callerMemory, dependentLaunches, device);
  }

  public SessionOptions withProducts(ProductAlgorithms algorithms) {
    return new SessionOptions(
        timeout, launch, world, multicast, algorithms, callerMemory, dependentLaunches, device);
  }

  public SessionOptions withCallerMemory(boolean value) {
    return new SessionOptions(
        timeout, launch, world, multicast, products, value, dependentLaunches, device);
  }

  public SessionOptions withDependentLaunches(boolean value) {
    return new SessionOptions(
        timeout, launch, world, multicast, products, callerMemory, value, device);
  }

  public SessionOptions withDevice(int value) {
    return new SessionOptions(
        timeout,
        launch,
        world,
        multicast,
        products,
        callerMemory,
        dependentLaunches,
        OptionalInt.of(value));
  }
}
