package dev.symplan.runtime.doctor;

import dev.symplan.planner.report.Table;
import dev.symplan.planner.report.Units;
import dev.symplan.runtime.doctor.Diagnosis.Finding;
import dev.symplan.runtime.doctor.Diagnosis.Lack;
import dev.symplan.runtime.doctor.Machine.Gpu;
import dev.symplan.runtime.doctor.Machine.Link;
import java.util.ArrayList;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A diagnosis for people. */
public final class DoctorText {
  private final Diagnosis diagnosis;
  private final Machine machine;

  private DoctorText(Diagnosis diagnosis) {
    this.diagnosis = diagnosis;
    this.machine = diagnosis.machine();
  }

  /** {@return paragraphs, each ended by a line feed, with an empty line between} */
  public static String print(Diagnosis diagnosis) {
    var text = new DoctorText(diagnosis);
    return Stream.of(
            text.verdict(),
            text.gpus(),
            text.links(),
            text.symmetricMemory(),
            text.libraries(),
            text.settings(),
            text.variants(),
            text.target())
        .filter(part -> !part.isEmpty())
        .collect(Collectors.joining("\n"));
  }

  private String verdict() {
    var driver =
        machine
            .driver()
            .map(
                d ->
                    "driver %s, up to CUDA %s"
                        .formatted(d.version().orElse("of unknown version"), d.cudaVersion()))
            .orElse("no NVIDIA driver");
    return "%s, %s\nbackend cuda: %s\nbackend host: ready, with every variant, on the CPU\n"
        .formatted(
            machine.system(),
            driver,
            machine.problem().map(problem -> "cannot be used: " + problem).orElse("ready"));
  }

  private String gpus() {
    if (machine.gpus().isEmpty()) {
      return "GPUs: none\n";
    }
    var table =
        new Table("GPU", "name", "memory", "sm", "SMs", "copy engines", "handles", "multicast");
    for (var gpu : machine.gpus()) {
      table.row(
          Integer.toString(gpu.index()),
          gpu.name(),
          Units.bytes(gpu.memoryBytes()),
          "sm_" + gpu.capability(),
          Integer.toString(gpu.multiprocessors()),
          Integer.toString(gpu.copyEngines()),
          handles(gpu),
          gpu.multicast() ? "yes" : "no");
    }
    return table.render();
  }

  private static String handles(Gpu gpu) {
    if (!gpu.virtualMemory()) {
      return "none";
    }
    var kinds = new ArrayList<String>();
    if (gpu.fileHandles()) {
      kinds.add("file");
    }
    if (gpu.fabricHandles()) {
      kinds.add("fabric");
    }
    return kinds.isEmpty() ? "own process" : String.join(", ", kinds);
  }

  private String links() {
    if (machine.gpus().size() < 2) {
      return "";
    }
    var header =
        Stream.concat(
                Stream.of("from \\ to"),
                machine.gpus().stream().map(gpu -> Integer.toString(gpu.index())))
            .toArray(String[]::new);
    var table = new Table(header);
    for (var from : machine.gpus()) {
      table.row(
          Stream.concat(
                  Stream.of(Integer.toString(from.index())),
                  machine.gpus().stream().map(to -> cell(from, to)))
              .toArray(String[]::new));
    }
    return "links: NV18 is 18 NVLinks\n" + table.render();
  }

  private String cell(Gpu from, Gpu to) {
    return from.index() == to.index()
        ? "-"
        : machine.link(from.index(), to.index()).map(DoctorText::cell).orElse("unknown");
  }

  private static String cell(Link link) {
    var way =
        link.nvlinks()
            .map(
                nvlinks ->
                    nvlinks.count() == 0
                        ? "PCIe"
                        : nvlinks.rate().isPresent()
                            ? String.format(
                                Locale.ROOT,
                                "NV%d %.0f GB/s",
                                nvlinks.count(),
                                nvlinks.count() * nvlinks.rate().getAsDouble())
                            : "NV" + nvlinks.count())
            .orElse("peer");
    return link.peerAccess() ? way : way.equals("peer") ? "no access" : way + " (no access)";
  }

  private String symmetricMemory() {
    if (machine.gpus().isEmpty()) {
      return "";
    }
    var table = new Table("symmetric memory", "", "");
    table.row(
        "  peer access",
        diagnosis.peers() > 1 ? "yes" : "no",
        diagnosis.peers() > 1
            ? "GPUs 0 to %d reach each other's memory".formatted(diagnosis.peers() - 1)
            : "no two GPUs reach each other's memory");
    finding(table, "  NCCL windows", diagnosis.windows());
    finding(table, "  multicast", diagnosis.multicast());
    return table.render();
  }

  private static void finding(Table table, String name, Finding finding) {
    table.row(name, finding.present() ? "yes" : "no", finding.detail());
  }

  private String libraries() {
    if (machine.libraries().isEmpty()) {
      return "";
    }
    var out = new StringBuilder();
    var table = new Table("libraries", "version", "file");
    for (var library : machine.libraries()) {
      table.row(
          "  " + library.name(),
          library.version().orElse("-"),
          library.file().orElse("none; it is for " + library.use()));
    }
    out.append(table.render());
    for (var library : machine.libraries()) {
      if (library.file().isEmpty()) {
        var places = new Table("  looked for %s in".formatted(library.name()), "found");
        library.looked().forEach(look -> places.row("    " + look.place(), look.outcome()));
        out.append(places.render());
      }
    }
    return out.toString();
  }

  private String settings() {
    if (machine.settings().isEmpty()) {
      return "";
    }
    return machine.settings().stream()
        .map(
            setting ->
                "  %s=%s%s\n"
                    .formatted(
                        setting.name(), setting.value(), setting.ours() ? "  (by Symplan)" : ""))
        .collect(Collectors.joining("", "settings in force\n", ""));
  }

  private String variants() {
    var table = new Table("variant", "ranks", "needs", "missing");
    for (var support : diagnosis.variants()) {
      table.row(
          support.variant().text(),
          support.ranks() == 0 ? "none" : Integer.toString(support.ranks()),
          support.needs(),
          support.lack().map(Lack::toString).orElse(""));
    }
    return table.render();
  }

  private String target() {
    if (machine.gpus().isEmpty()) {
      return "";
    }
    return diagnosis
        .fit()
        .map(
            fit ->
                "target %s describes these GPUs: %s\n"
                    .formatted(fit.target().name(), fit.command()))
        .orElseGet(
            () ->
                ("no built-in target describes these GPUs; measure one:\n"
                    + "  symplan bench collectives --csv points.csv\n"
                    + "  symplan calibrate points.csv -o here.json\n"
                    + "and compile with --target here.json\n"));
  }
}
