package dev.symplan.runtime.cuda;

import dev.symplan.codegen.Executable;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import java.time.Duration;
import java.util.Optional;

/**
 * Ranks are the GPUs of this host, in the driver's order, each driven by a thread of this process.
 *
 * <p>Nothing of CUDA is loaded before somebody asks {@link #unavailable}.
 */
public final class CudaBackend implements Backend {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final Duration patience;

  /** For {@link java.util.ServiceLoader}. */
  public CudaBackend() {
    this(PATIENCE);
  }

  /**
   * @param patience how long a rank waits for others before the run is given up
   */
  public CudaBackend(Duration patience) {
    this.patience = patience;
  }

  @Override
  public String name() {
    return "cuda";
  }

  @Override
  public Optional<String> unavailable() {
    return Libraries.problem();
  }

  @Override
  public Session open(Executable executable) {
    unavailable()
        .ifPresent(
            problem -> {
              throw new RunException("backend cuda: " + problem);
            });
    return CudaSession.open(executable, patience);
  }
}
