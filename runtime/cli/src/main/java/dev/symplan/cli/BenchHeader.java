package dev.symplan.cli;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.Backend;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import picocli.CommandLine.Model.CommandSpec;

/** What every output of a measurement begins with: the command, the machine and the versions. */
final class BenchHeader {
  private BenchHeader() {}

  static ImmutableList<String> lines(CommandSpec root, Backend backend) {
    return ImmutableList.of(command(root), machine(backend), versions());
  }

  static String command(CommandSpec root) {
    return "symplan " + String.join(" ", root.commandLine().getParseResult().originalArgs());
  }

  private static String machine(Backend backend) {
    return "backend %s on %s; %s %s, %d processors"
        .formatted(
            backend.name(),
            device(backend),
            System.getProperty("os.name"),
            System.getProperty("os.arch"),
            Runtime.getRuntime().availableProcessors());
  }

  static String versions() {
    return "symplan %s, JDK %s, %s"
        .formatted(
            VersionCommand.version(),
            System.getProperty("java.version"),
            Instant.now().truncatedTo(ChronoUnit.SECONDS));
  }

  /** {@return what points say that they were measured on} */
  static String device(Backend backend) {
    return backend.name();
  }
}
