package dev.symplan.runtime.cuda;

import com.google.common.hash.Hashing;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.file.AtomicFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Keeps choices of algorithms: as long as the process runs, and in a folder, with one file for each
 * machine. Without the folder, and with a file that is damaged, choices are made again. Of two
 * processes that write at once, one loses what it adds.
 */
final class ProductCache {

  /** Names the folder; {@code off} for none. */
  static final String VARIABLE = "SYMPLAN_CACHE";

  private static final String OFF = "off";

  /** Another one where files mean something else. */
  private static final String FORMAT = "symplan products 1 ";

  private static final int NAME_LENGTH = 16;

  private final Optional<Path> folder;
  private final Map<String, ProductChoices> known = new ConcurrentHashMap<>();

  ProductCache(Optional<Path> folder) {
    this.folder = folder;
  }

  /**
   * {@return where files are kept: the folder that {@value #VARIABLE} names, else one of the
   * user's; empty for nowhere}
   */
  static Optional<Path> folder(Map<String, String> environment) {
    var named = environment.getOrDefault(VARIABLE, "");
    if (!named.isEmpty()) {
      return named.equals(OFF) ? Optional.empty() : Optional.of(Path.of(named));
    }
    var caches = environment.getOrDefault("XDG_CACHE_HOME", "");
    var home = environment.getOrDefault("HOME", "");
    // As the XDG specification has it, a relative path counts as none.
    if (!caches.isEmpty() && Path.of(caches).isAbsolute()) {
      return Optional.of(Path.of(caches, "symplan"));
    }
    return home.isEmpty() ? Optional.empty() : Optional.of(Path.of(home, ".cache", "symplan"));
  }

  /** {@return the known choices for a machine} */
  ProductChoices read(String machine) {
    var choices = known.getOrDefault(machine, ProductChoices.none(machine));
    return folder
        .flatMap(in -> read(file(in, machine), machine))
        .map(kept -> kept.with(choices))
        .orElse(choices);
  }

  /** Adds choices. A folder that cannot be written gets none. */
  synchronized void add(ProductChoices choices) {
    if (choices.algorithms().isEmpty()) {
      return;
    }
    var all = read(choices.machine()).with(choices);
    known.put(choices.machine(), all);
    folder.ifPresent(
        in -> {
          try {
            AtomicFile.folder(in);
            AtomicFile.write(
                file(in, choices.machine()),
                FORMAT + digest(all.text()) + "\n" + all.text(),
                "the choice of algorithms");
          } catch (CompileException _) {
            // They are measured again then.
          }
        });
  }

  private static Path file(Path folder, String machine) {
    return folder.resolve("products-%s.txt".formatted(digest(machine).substring(0, NAME_LENGTH)));
  }

  private static Optional<ProductChoices> read(Path file, String machine) {
    try {
      var text = Files.readString(file);
      int end = text.indexOf('\n') + 1;
      var rest = text.substring(end);
      return text.substring(0, end).equals(FORMAT + digest(rest) + "\n")
          ? ProductChoices.parse(rest).filter(choices -> choices.machine().equals(machine))
          : Optional.empty();
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  private static String digest(String text) {
    return Hashing.sha256().hashString(text, StandardCharsets.UTF_8).toString();
  }
}
