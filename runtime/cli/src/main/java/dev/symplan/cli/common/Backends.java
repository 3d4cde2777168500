package dev.symplan.cli.common;

import dev.symplan.runtime.Backend;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.MachineProbe;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** Finds the backend that an option names, and reports those that cannot be used. */
public final class Backends {
  private Backends() {}

  /**
   * {@return the backend with this name}
   *
   * @throws ParameterException when none exists
   */
  public static Backend named(String name, CommandSpec spec) {
    return Backend.ofName(name)
        .orElseThrow(
            () ->
                new ParameterException(
                    spec.commandLine(),
                    "--backend: unknown backend '%s'; choose from %s"
                        .formatted(name, Backend.all().map(Backend::name).toList())));
  }

  /**
   * {@return the diagnosis of this machine for a backend; empty if it needs no GPUs}
   *
   * @param multicast whether it may use NVLink multicast
   */
  public static Optional<Diagnosis> machine(Backend backend, boolean multicast) {
    return backend.name().equals("host")
        ? Optional.empty()
        : Optional.of(Diagnosis.of(MachineProbe.ofThisMachine(), backend.variants(multicast)));
  }

  /** {@return whether it can be used on this machine; if not, the console shows the reason} */
  public static boolean isUsable(Backend backend, Console console) {
    var reason = backend.unavailable();
    reason.ifPresent(
        why -> {
          console.progress("error: backend %s: %s".formatted(backend.name(), why));
          console.progress("  hint: symplan doctor shows what was searched for, and where");
        });
    return reason.isEmpty();
  }

  /**
   * Refuses a command that has all ranks in its process where a launcher has started several: each
   * would do the whole work, on the same devices and into the same files.
   *
   * @param variables as of {@link System#getenv()}
   * @throws RunException when one has, or the environment contradicts itself
   */
  public static void requireOneProcess(String command, Map<String, String> variables) {
    Launch.AUTO
        .environment(variables)
        .ifPresent(
            environment -> {
              throw new RunException(
                  "%s runs all ranks in one process, but this is %s: start it alone"
                      .formatted(command, environment));
            });
  }
}
