package dev.symplan.runtime.host;

import dev.symplan.codegen.Executable;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import java.time.Duration;
import java.util.Optional;

/** The embedded backend: one thread for each stream of each rank. */
public final class HostBackend implements Backend {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final Duration patience;

  public HostBackend() {
    this(PATIENCE);
  }

  /**
   * @param patience how long a rank waits for others before the run is given up
   */
  public HostBackend(Duration patience) {
    this.patience = patience;
  }

  @Override
  public String name() {
    return "host";
  }

  @Override
  public Optional<String> unavailable() {
    return Optional.empty();
  }

  @Override
  public Session open(Executable executable) {
    return new HostSession(executable, patience);
  }
}
