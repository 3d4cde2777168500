package dev.symplan.runtime.host;

import dev.symplan.codegen.Executable;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import java.time.Duration;
import java.util.Optional;

/**
 * The embedded backend, which works everywhere: one thread for each stream of each rank, arenas in
 * off-heap memory.
 */
public final class HostBackend implements Backend {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final Duration timeout;

  /** A backend that gives up after waiting for a minute. */
  public HostBackend() {
    this(TIMEOUT);
  }

  /**
   * @param timeout how long a rank waits for others before the run is given up
   */
  public HostBackend(Duration timeout) {
    this.timeout = timeout;
  }

  @Override
  public String name() {
    return HOST;
  }

  @Override
  public Optional<String> unavailable() {
    return Optional.empty();
  }

  /** Has all ranks in this process, whatever the environment says. */
  @Override
  public Session open(Executable executable, SessionOptions options) {
    if (options.world().isPresent() || options.launch() == Launch.ENV) {
      throw new RunException("backend host runs all ranks in one process");
    }
    return new HostSession(executable, options.timeout().orElse(timeout));
  }
}
