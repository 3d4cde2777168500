package dev.symplan.cli;

import dev.symplan.runtime.Backend;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** What commands say of the backend that an option names. */
final class Backends {
  private Backends() {}

  /**
   * {@return the backend called so}
   *
   * @throws ParameterException when there is none
   */
  static Backend named(String name, CommandSpec spec) {
    return Backend.ofName(name)
        .orElseThrow(
            () ->
                new ParameterException(
                    spec.commandLine(),
                    "--backend: there is no backend '%s'; there are %s"
                        .formatted(name, Backend.all().map(Backend::name).toList())));
  }

  /** {@return whether it can be used on this machine; if not, the console is told why} */
  static boolean isUsable(Backend backend, Console console) {
    var reason = backend.unavailable();
    reason.ifPresent(
        why -> {
          console.progress("error: backend %s: %s".formatted(backend.name(), why));
          console.progress("  hint: symplan doctor tells what was looked for, and where");
        });
    return reason.isEmpty();
  }
}
