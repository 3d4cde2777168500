package dev.symplan.runtime.doctor;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.report.Table;
import dev.symplan.runtime.doctor.Diagnosis.Finding;
import dev.symplan.runtime.doctor.Diagnosis.Lack;
import dev.symplan.runtime.doctor.Machine.Gpu;
import dev.symplan.runtime.doctor.Machine.Link;
import dev.symplan.runtime.doctor.Machine.NvLinks;
import dev.symplan.runtime.doctor.Machine.Setting;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
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
                Stream.of("link from \\ to"),
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
    return table.render() + legend();
  }

  private String cell(Gpu from, Gpu to) {
    return from.index() == to.index()
        ? "-"
        : machine.link(from.index(), to.index()).map(DoctorText::cell).orElse("unknown");
  }

  private static String cell(Link link) {
    var way =
        link.nvlinks()
            .map(nvlinks -> nvlinks.count() == 0 ? "PCIe" : "NV" + nvlinks.count())
            .orElse("yes");
    return link.peerAccess() ? way : link.nvlinks().isPresent() ? way + " no access" : "no access";
  }

  /** {@return the meaning of the cells, as far as it is known} */
  private String legend() {
    var nvlinks = machine.links().stream().flatMap(link -> link.nvlinks().stream()).toList();
    if (nvlinks.isEmpty()) {
      return "yes: peers can access each other's memory; libnvidia-ml would show over which"
          + " links\n";
    }
    return nvlinks.stream()
        .filter(n -> n.count() > 0)
        .max(Comparator.comparingInt(NvLinks::count))
        .map(
            n ->
                "NV%s: %s NVLinks%s\n"
                    .formatted(
                        n.count(),
                        n.count(),
                        n.rate().isEmpty()
                            ? ""
                            : String.format(
                                Locale.ROOT,
                                ", each %.1f GB/s in each direction",
                                n.rate().getAsDouble())))
        .orElse("");
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
            ? "GPUs 0 to %s can access each other's memory".formatted(diagnosis.peers() - 1)
            : "no two GPUs can access each other's memory");
    finding(table, "  NCCL windows", diagnosis.windows());
    finding(table, "  between processes", diagnosis.processes());
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
    var table = new Table("libraries", "version", "file", "");
    for (var library : machine.libraries()) {
      table.row(
          "  " + library.name(),
          library.version().orElse("-"),
          library.file().orElse("none"),
          library.problem().orElse(library.file().isEmpty() ? "for " + library.use() : ""));
    }
    return table.render() + looked();
  }

  /** The places, each once, and what was found there instead. */
  private String looked() {
    var missing = machine.libraries().stream().filter(l -> l.file().isEmpty()).toList();
    if (missing.isEmpty()) {
      return "";
    }
    var places = new LinkedHashMap<String, List<String>>();
    for (var library : missing) {
      for (var look : library.looked()) {
        var found = places.computeIfAbsent(look.place(), _ -> new ArrayList<>());
        if (!look.outcome().equals(Machine.Attempt.NONE)) {
          found.add("%s: %s".formatted(library.name(), look.outcome()));
        }
      }
    }
    var table = new Table("missing libraries were searched for in");
    places.forEach((place, found) -> table.row("  " + place, String.join("; ", found)));
    return table.render();
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
                        setting.name(),
                        setting.value(),
                        setting.source().equals(Setting.ENVIRONMENT)
                            ? ""
                            : "  (by %s)".formatted(setting.source())))
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
                "target %s describes %s%s:\n  %s\n"
                    .formatted(
                        fit.target().name(),
                        fit.ranks() == machine.gpus().size()
                            ? "these GPUs"
                            : "%s of these GPUs".formatted(fit.ranks()),
                        fit.note().map(note -> " (%s)".formatted(note)).orElse(""),
                        fit.command()))
        .orElseGet(
            () ->
                ("no built-in target describes these GPUs; measure one:\n"
                    + "  symplan bench collectives --csv points.csv\n"
                    + "  symplan calibrate points.csv -o here.json\n"
                    + "and compile with --target here.json\n"));
  }
}
