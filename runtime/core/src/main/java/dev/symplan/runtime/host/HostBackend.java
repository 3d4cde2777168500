package dev.symplan.runtime.host;

import dev.symplan.codegen.Executable;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.launch.Launch;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.Optional;

/**
 * The embedded backend, which works everywhere: one thread for each stream of each rank, arenas in
 * off-heap memory. Ranks may be processes, too, which share memory within a host and use the store
 * of their {@link World} across: so plans for several hosts run without GPUs.
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
    this.timeout = SessionOptions.DEFAULT.withTimeout(timeout).timeout().orElseThrow();
  }

  @Override
  public String name() {
    return HOST;
  }

  @Override
  public Optional<String> unavailable() {
    return Optional.empty();
  }

  @Override
  public void requireOps(Executable executable) {
    executable.ranks().forEach(RankRunner::checkOps);
  }

  @Override
  public boolean canSpanProcesses() {
    return true;
  }

  /**
   * Has all ranks in this process, unless a world is given or one rank is wanted: a launcher that
   * has started several processes may have done so for other reasons.
   */
  @Override
  public Session open(Executable executable, SessionOptions options) {
    var limit = options.timeout().orElse(timeout);
    if (options.world().isPresent() || options.launch() != Launch.ENV) {
      return new HostSession(executable, limit, options.world(), () -> {});
    }
    var world = World.join(options.launch().environment(System.getenv()).orElseThrow(), limit);
    try {
      return new HostSession(executable, limit, Optional.of(world), world::close);
    } catch (RuntimeException | Error e) {
      world.close();
      throw e;
    }
  }
}
