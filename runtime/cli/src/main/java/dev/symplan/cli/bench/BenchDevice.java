package dev.symplan.cli.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.cli.common.Version;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.doctor.Machine;
import dev.symplan.runtime.doctor.MachineProbe;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;

/**
 * The device that is measured.
 *
 * @param gpus the machine with its GPUs; empty for the host backend, which needs none
 */
record BenchDevice(Backend backend, Optional<Machine> gpus) {
  private static final int RANKS_ON_HOST = 4;

  static BenchDevice of(Backend backend) {
    return new BenchDevice(
        backend,
        backend.name().equals(Backend.HOST)
            ? Optional.empty()
            : Optional.of(MachineProbe.ofThisMachine()));
  }

  /** {@return the default number of ranks} */
  int ranks() {
    return gpus.map(machine -> machine.gpus().size()).orElse(RANKS_ON_HOST);
  }

  /** {@return the default target for this number of ranks} */
  Target target(int ranks) {
    return gpus.isEmpty() ? Target.HOST : Target.defaultFor(ranks);
  }

  /** {@return the device that points name} */
  String name() {
    return gpus.flatMap(machine -> machine.gpus().stream().findFirst())
        .map(Machine.Gpu::name)
        .orElse(backend.name());
  }

  /** {@return the first lines of every output: the command, the machine and the versions} */
  ImmutableList<String> header(CommandSpec root) {
    return ImmutableList.of(
        "symplan " + String.join(" ", root.commandLine().getParseResult().originalArgs()),
        machine(),
        "symplan %s, JDK %s, %s"
            .formatted(
                Version.text(),
                System.getProperty("java.version"),
                Instant.now().truncatedTo(ChronoUnit.SECONDS)));
  }

  /** {@return the machine and the versions, without files and folders of the machine} */
  String machine() {
    var here =
        "%s, %s processors"
            .formatted(Machine.thisSystem(), Runtime.getRuntime().availableProcessors());
    return Stream.of(
            Stream.of("backend " + backend.name()),
            gpus.stream().flatMap(BenchDevice::facts),
            Stream.of(here))
        .flatMap(words -> words)
        .collect(Collectors.joining("; "));
  }

  private static Stream<String> facts(Machine machine) {
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
        machine.settings().stream()
            .filter(setting -> !isPath(setting.value()))
            .map(setting -> setting.name() + "=" + setting.value());
    return Stream.of(gpus, driver, libraries, settings).flatMap(words -> words);
  }

  /** A place on this machine says nothing to other readers; libraries show their versions. */
  private static boolean isPath(String value) {
    return value.startsWith("/") || value.startsWith("~");
  }
}
