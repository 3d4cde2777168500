package dev.symplan.runtime.tensor;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Maps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.PathErrors;
import dev.symplan.ir.text.SourceReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The tensors of a checkpoint as Hugging Face's libraries save it: one safetensors file, or several
 * (shards) with an index that says which tensor is in which. Files are mapped into memory, and read
 * when a tensor is touched.
 */
public final class Checkpoint {
  private static final String SINGLE = "model.safetensors";
  private static final String INDEX = SINGLE + ".index.json";

  /** A tensor, and the file that has it. */
  public record Entry(Path file, HostTensor tensor) {}

  private final Path source;
  private final ImmutableMap<String, Entry> entries;

  private Checkpoint(Path source, ImmutableMap<String, Entry> entries) {
    this.source = source;
    this.entries = entries;
  }

  /**
   * {@return a checkpoint, of which all shards exist and have what the index names}
   *
   * @param path a safetensors file, an index ({@code model.safetensors.index.json}), or a directory
   *     with one of them
   * @throws CompileException when a file is missing or damaged, or lacks a tensor of the index
   */
  public static Checkpoint open(Path path) {
    var file = Files.isDirectory(path) ? fileIn(path) : path;
    return new Checkpoint(file, file.toString().endsWith(".json") ? ofIndex(file) : ofFile(file));
  }

  private static Path fileIn(Path folder) {
    for (var name : new String[] {INDEX, SINGLE}) {
      if (Files.exists(folder.resolve(name))) {
        return folder.resolve(name);
      }
    }
    try (var files = Files.list(folder)) {
      var found = files.filter(file -> file.toString().endsWith(".safetensors")).limit(2).toList();
      if (found.size() == 1) {
        return found.getFirst();
      }
      throw wrong(
          DiagnosticCode.UNREADABLE_FILE,
          folder,
          "this is a directory, and contains %s"
              .formatted(
                  found.isEmpty() ? "no checkpoint" : "several safetensors files, but no " + INDEX),
          "a checkpoint has %s, or %s".formatted(INDEX, SINGLE));
    } catch (IOException e) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, folder, "cannot be read: " + e.getMessage(), "");
    }
  }

  private static ImmutableMap<String, Entry> ofFile(Path file) {
    return ImmutableMap.copyOf(
        Maps.transformValues(Safetensors.read(file), tensor -> new Entry(file, tensor)));
  }

  private static ImmutableMap<String, Entry> ofIndex(Path index) {
    var root = Json.parse(SourceReader.read(index), new PathErrors(DiagnosticCode.BAD_TENSORS));
    if (isLayout(root)) {
      throw wrong(
          DiagnosticCode.BAD_TENSORS,
          index,
          "this is a weights layout, which says what tensor of a checkpoint each input is",
          "give it to --weights-layout, and the checkpoint itself to --weights");
    }
    var shardOf = root.get("weight_map").fields();
    var shards = new LinkedHashMap<String, Map<String, HostTensor>>();
    var entries = ImmutableMap.<String, Entry>builderWithExpectedSize(shardOf.size());
    shardOf.forEach(
        (name, at) -> {
          var shard = at.text();
          var file = index.resolveSibling(requirePlain(shard, at));
          @Nullable HostTensor tensor =
              shards.computeIfAbsent(shard, _ -> shard(file, index, at)).get(name);
          if (tensor == null) {
            throw wrong(
                DiagnosticCode.BAD_TENSORS,
                file,
                "no tensor '%s' was found, but %s says that it is here"
                    .formatted(name, index.getFileName()),
                "are the shards and the index from the same checkpoint?");
          }
          entries.put(name, new Entry(file, tensor));
        });
    return entries.buildOrThrow();
  }

  /** Whether it is a {@code weights.json}: users have both files beside each other. */
  private static boolean isLayout(Json root) {
    return root.find("weight_map").isEmpty()
        && root.fields().values().stream()
            .anyMatch(input -> input.isObject() && input.find("tensor").isPresent());
  }

  /** An index names files beside it, and nothing else. */
  private static String requirePlain(String shard, Json at) {
    if (shard.isEmpty()
        || shard.contains("/")
        || shard.contains("\\")
        || shard.indexOf('\0') >= 0
        || !shard.endsWith(".safetensors")) {
      throw at.wrong(
          "'%s' is not the name of a safetensors file".formatted(shard),
          "shards are in the directory of the index");
    }
    return shard;
  }

  private static Map<String, HostTensor> shard(Path file, Path index, Json at) {
    if (!Files.exists(file)) {
      throw at.wrong(
          "the shard %s does not exist".formatted(file.getFileName()),
          "%s names it; download the whole checkpoint".formatted(index.getFileName()));
    }
    return Safetensors.read(file);
  }

  /** {@return the file or the index} */
  public Path source() {
    return source;
  }

  public ImmutableSet<String> names() {
    return entries.keySet();
  }

  /** {@return a tensor, row-major and read-only, if the checkpoint has one of this name} */
  public Optional<Entry> find(String name) {
    return Optional.ofNullable(entries.get(name));
  }

  /** {@return how many tensors there are, and some of their names; for messages} */
  @Override
  public String toString() {
    return Units.count(entries.size(), "tensor")
        + (entries.isEmpty()
            ? ""
            : ": "
                + String.join(", ", entries.keySet().stream().limit(4).toList())
                + (entries.size() > 4 ? ", …" : ""));
  }

  private static CompileException wrong(
      DiagnosticCode code, Path file, String message, String hint) {
    return CompileException.ofFile(code, file, message, hint);
  }
}
