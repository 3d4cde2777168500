package dev.symplan.cli;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.doctor.Machine;
import dev.symplan.runtime.doctor.MachineProbe;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;

/** What every output of a measurement begins with: the command, the machine and the versions. */
final class BenchHeader {
  private BenchHeader() {}

  static ImmutableList<String> lines(CommandSpec root, Backend backend) {
    return ImmutableList.of(command(root), machine(backend), versions());
  }

  private static String command(CommandSpec root) {
    return "symplan " + String.join(" ", root.commandLine().getParseResult().originalArgs());
  }

  private static String machine(Backend backend) {
    var here =
        "%s, %d processors"
            .formatted(Machine.thisSystem(), Runtime.getRuntime().availableProcessors());
    if (backend.name().equals(Backend.HOST.name())) {
      return "backend host; " + here;
    }
    var machine = MachineProbe.ofThisMachine();
    var gpus =
        machine.gpus().stream()
            .collect(Collectors.groupingBy(Machine.Gpu::name, TreeMap::new, Collectors.counting()))
            .entrySet()
            .stream()
            .map(entry -> entry.getValue() + " x " + entry.getKey());
    var driver =
        machine.driver().stream()
            .map(d -> "driver %s (CUDA %s)".formatted(d.version().orElse("?"), d.cudaVersion()));
    var libraries =
        machine.libraries().stream()
            .flatMap(library -> library.version().map(v -> library.name() + " " + v).stream());
    var settings =
        machine.settings().stream().map(setting -> setting.name() + "=" + setting.value());
    return Stream.of(
            Stream.of("backend " + backend.name()),
            gpus,
            driver,
            libraries,
            settings,
            Stream.of(here))
        .flatMap(words -> words)
        .collect(Collectors.joining("; "));
  }

  private static String versions() {
    return "symplan %s, JDK %s, %s"
        .formatted(
            VersionCommand.version(),
            System.getProperty("java.version"),
            Instant.now().truncatedTo(ChronoUnit.SECONDS));
  }

  /** {@return what points say that they were measured on} */
  static String device(Backend backend) {
    return backend.name().equals(Backend.HOST.name())
        ? "host"
        : MachineProbe.ofThisMachine().gpus().stream()
            .findFirst()
            .map(Machine.Gpu::name)
            .orElse(backend.name());
  }
}
