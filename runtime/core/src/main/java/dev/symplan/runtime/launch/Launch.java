package dev.symplan.runtime.launch;

import dev.symplan.runtime.failure.RunException;
import java.util.Map;
import java.util.Optional;

/** Whether a process has all ranks of a plan, or one. */
public enum Launch {
  /** One where a launcher has started several processes, else all. */
  AUTO,
  /** All, whatever the environment says. */
  SINGLE,
  /** One: a launcher must have started the process. */
  ENV;

  /**
   * {@return the environment by which this process finds the others; empty if it has all ranks}
   *
   * @param variables as of {@link System#getenv()}
   * @throws RunException when the environment is wrong, or a launcher's is wanted and not there
   */
  public Optional<LaunchEnvironment> environment(Map<String, String> variables) {
    return switch (this) {
      case AUTO -> LaunchEnvironment.of(variables).filter(environment -> environment.size() > 1);
      case SINGLE -> Optional.empty();
      case ENV -> {
        var environment = LaunchEnvironment.of(variables);
        if (environment.isEmpty()) {
          throw new RunException(
              "no launcher has started this process: none of these is set: RANK (torchrun),"
                  + " OMPI_COMM_WORLD_RANK (mpirun) and SLURM_PROCID (srun)");
        }
        yield environment;
      }
    };
  }
}
