package dev.symplan.runtime.cuda.library;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.cuda.library.LibrarySearch.Finding;
import dev.symplan.runtime.doctor.Machine;
import dev.symplan.runtime.doctor.Machine.Driver;
import dev.symplan.runtime.doctor.Machine.Gpu;
import dev.symplan.runtime.doctor.Machine.Library;
import dev.symplan.runtime.doctor.Machine.Link;
import dev.symplan.runtime.doctor.MachineProbe;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Asks driver and libraries what this machine has, without a context on any GPU and without the
 * bindings, so that it also works on machines that lack something.
 */
public final class CudaProbe implements MachineProbe {
  @Override
  public Machine probe() {
    var problem = Libraries.problem();
    if (!Libraries.isLinux()) {
      return Machine.without(problem.orElseThrow());
    }
    return probe(Libraries.ofProcess(), problem, System.getenv());
  }

  static Machine probe(
      Libraries libraries, Optional<String> problem, Map<String, String> environment) {
    var driverLibrary = libraries.find(CudaLibrary.DRIVER).library();
    var driver = driverLibrary.flatMap(CudaProbe::started);
    var management = libraries.management();
    try (var nvml = new Closing(management.library().flatMap(Nvml::start))) {
      var listed = ImmutableList.<Library>builder();
      for (var wanted : CudaLibrary.values()) {
        listed.add(library(libraries, wanted));
      }
      var version = nvml.nvml().flatMap(Nvml::driverVersion);
      listed.add(
          new Library(
              Nvml.SONAME,
              "versions and links",
              management.library().map(SharedLibrary::file),
              version,
              Optional.empty(),
              management.looked()));
      return new Machine(
          Machine.thisSystem(),
          driverLibrary.map(l -> new Driver(version, CudaLibrary.driver(l).orElse(0))),
          driver.map(CudaProbe::gpus).orElse(ImmutableList.of()),
          driver.map(d -> links(d, nvml.nvml())).orElse(ImmutableList.of()),
          listed.build(),
          Settings.of(environment),
          problem);
    }
  }

  /** A resource that may not be there. */
  private record Closing(Optional<Nvml> nvml) implements AutoCloseable {
    @Override
    public void close() {
      nvml.ifPresent(Nvml::close);
    }
  }

  private static Optional<NvidiaDriver> started(SharedLibrary library) {
    return switch (NvidiaDriver.start(library)) {
      case NvidiaDriver.Started(var driver) -> Optional.of(driver);
      case NvidiaDriver.Unusable _ -> Optional.empty();
    };
  }

  private static Library library(Libraries libraries, CudaLibrary wanted) {
    Finding finding = libraries.find(wanted);
    return new Library(
        wanted.soname(),
        wanted.use(),
        finding.library().map(SharedLibrary::file),
        finding.library().flatMap(wanted::version),
        finding.library().flatMap(library -> Libraries.problemOf(wanted, library)),
        finding.looked());
  }

  private static ImmutableList<Gpu> gpus(NvidiaDriver driver) {
    return IntStream.range(0, driver.gpus())
        .mapToObj(driver::gpu)
        .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableList<Link> links(NvidiaDriver driver, Optional<Nvml> nvml) {
    var links = ImmutableList.<Link>builder();
    for (int from = 0; from < driver.gpus(); from++) {
      for (int to = 0; to < driver.gpus(); to++) {
        if (from != to) {
          var ids = new String[] {driver.busId(from), driver.busId(to)};
          links.add(
              new Link(
                  from,
                  to,
                  driver.reaches(from, to),
                  driver.hasAtomics(from, to),
                  nvml.flatMap(n -> n.links(ids[0], ids[1]))));
        }
      }
    }
    return links.build();
  }
}
