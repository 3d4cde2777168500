package dev.symplan.runtime.doctor;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.base.Ascii;
import dev.symplan.runtime.doctor.Diagnosis.Finding;

/** A diagnosis for programs: one JSON object without the unknown facts. */
public final class DoctorJson {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private DoctorJson() {}

  /** {@return the text, ended by a line feed} */
  public static String print(Diagnosis diagnosis) {
    var root = NODES.objectNode();
    var machine = diagnosis.machine();
    root.put("system", machine.system());
    root.put("usable", diagnosis.isUsable());
    machine.problem().ifPresent(problem -> root.put("problem", problem));
    machine
        .driver()
        .ifPresent(
            driver -> {
              var node = root.putObject("driver");
              driver.version().ifPresent(version -> node.put("version", version));
              node.put("cuda", driver.cudaVersion());
            });
    var gpus = root.putArray("gpus");
    for (var gpu : machine.gpus()) {
      gpus.addObject()
          .put("index", gpu.index())
          .put("name", gpu.name())
          .put("memory_bytes", gpu.memoryBytes())
          .put(
              "compute_capability", "%s.%s".formatted(gpu.capability() / 10, gpu.capability() % 10))
          .put("multiprocessors", gpu.multiprocessors())
          .put("copy_engines", gpu.copyEngines())
          .put("virtual_memory", gpu.virtualMemory())
          .put("file_handles", gpu.fileHandles())
          .put("fabric_handles", gpu.fabricHandles())
          .put("multicast", gpu.multicast());
    }
    var links = root.putArray("links");
    for (var link : machine.links()) {
      var node =
          links
              .addObject()
              .put("from", link.from())
              .put("to", link.to())
              .put("peer_access", link.peerAccess())
              .put("atomics", link.atomics());
      link.nvlinks()
          .ifPresent(
              nvlinks -> {
                node.put("nvlinks", nvlinks.count());
                nvlinks.rate().ifPresent(rate -> node.put("gb_per_second_each", rate));
              });
    }
    root.put("peers", diagnosis.peers());
    root.set("windows", finding(diagnosis.windows()));
    root.set("between_processes", finding(diagnosis.processes()));
    root.set("multicast", finding(diagnosis.multicast()));
    libraries(root, machine);
    var settings = root.putArray("settings");
    for (var setting : machine.settings()) {
      settings
          .addObject()
          .put("name", setting.name())
          .put("value", setting.value())
          .put("source", setting.source());
    }
    variants(root, diagnosis);
    diagnosis
        .fit()
        .ifPresent(
            fit -> {
              var node =
                  root.putObject("target")
                      .put("name", fit.target().name())
                      .put("ranks", fit.ranks())
                      .put("command", fit.command());
              fit.note().ifPresent(note -> node.put("note", note));
            });
    return text(root);
  }

  private static void libraries(ObjectNode root, Machine machine) {
    var libraries = root.putArray("libraries");
    for (var library : machine.libraries()) {
      var node = libraries.addObject().put("name", library.name()).put("use", library.use());
      library.file().ifPresent(file -> node.put("file", file));
      library.version().ifPresent(version -> node.put("version", version));
      library.problem().ifPresent(problem -> node.put("problem", problem));
      var looked = node.putArray("looked");
      library
          .looked()
          .forEach(
              look -> looked.addObject().put("place", look.place()).put("outcome", look.outcome()));
    }
  }

  private static void variants(ObjectNode root, Diagnosis diagnosis) {
    var variants = root.putArray("variants");
    for (var support : diagnosis.variants()) {
      var node =
          variants
              .addObject()
              .put("name", support.variant().text())
              .put("needs", support.needs())
              .put("ranks", support.ranks());
      support
          .lack()
          .ifPresent(
              lack -> {
                lack.reason()
                    .ifPresent(reason -> node.put("reason", Ascii.toLowerCase(reason.name())));
                node.put("missing", lack.detail());
              });
    }
  }

  private static ObjectNode finding(Finding finding) {
    return NODES.objectNode().put("present", finding.present()).put("detail", finding.detail());
  }

  private static String text(ObjectNode root) {
    var indenter = new DefaultIndenter("  ", "\n");
    var printer = new DefaultPrettyPrinter();
    printer.indentArraysWith(indenter);
    printer.indentObjectsWith(indenter);
    try {
      return new ObjectMapper().writer(printer).writeValueAsString(root) + "\n";
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}
