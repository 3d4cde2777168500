package dev.symplan.ir.hlo;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The tables at the head of a module, by which {@code stack_frame_id} names a line of the user's
 * program.
 */
public final class SourceTables {
  private record Location(int file, int function, int line) {}

  private final Map<Integer, String> files = new HashMap<>();
  private final Map<Integer, String> functions = new HashMap<>();
  private final Map<Integer, Location> locations = new HashMap<>();
  private final Map<Integer, Integer> frames = new HashMap<>();
  private final Map<Integer, String> known = new HashMap<>();

  SourceTables() {}

  /** Takes a row with a text. A table of another name is not of interest. */
  void name(String table, int number, String text) {
    switch (table) {
      case "FileNames" -> files.put(number, text);
      case "FunctionNames" -> functions.put(number, text);
      default -> {}
    }
  }

  /** Takes a row with fields. A table of another name is not of interest. */
  void row(String table, int number, Map<String, Integer> fields) {
    switch (table) {
      case "FileLocations" ->
          locations.put(
              number,
              new Location(
                  fields.getOrDefault("file_name_id", 0),
                  fields.getOrDefault("function_name_id", 0),
                  fields.getOrDefault("line", 0)));
      case "StackFrames" -> frames.put(number, fields.getOrDefault("file_location_id", 0));
      default -> {}
    }
  }

  /** {@return where the user's program says so: {@code train.py:21 in loss}} */
  public Optional<String> source(HloInstruction instruction) {
    var attributes = instruction.attributes();
    var frame = attributes.metadata("stack_frame_id").flatMap(SourceTables::number);
    if (frame.isPresent()) {
      var text = known.computeIfAbsent(frame.get(), this::frame);
      return text.isEmpty() ? Optional.empty() : Optional.of(text);
    }
    return attributes
        .metadata("source_file")
        .map(
            file -> attributes.metadata("source_line").map(line -> file + ":" + line).orElse(file));
  }

  private String frame(int number) {
    @Nullable Location location = locations.get(frames.getOrDefault(number, 0));
    if (location == null) {
      return "";
    }
    var function = functions.getOrDefault(location.function(), "");
    return "%s:%s%s"
        .formatted(
            files.getOrDefault(location.file(), "?"),
            location.line(),
            function.isEmpty() ? "" : " in " + function);
  }

  static Optional<Integer> number(String text) {
    try {
      return Optional.of(Integer.parseInt(text));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }
}
