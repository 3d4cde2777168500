package dev.symplan.planner.io;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.MultimapBuilder;
import com.google.common.collect.Multimaps;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.text.SourceReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The process groups of a case: {@code groups.json} for all ranks, {@code groups.rankN.json} where
 * each rank knows its own only. Both map a name to its ranks in order, or to several such lists
 * where a name means another group on other ranks, as the dimensions of a mesh do.
 */
final class GroupFiles {
  private static final Pattern FILE = Pattern.compile("groups(?:\\.rank[0-9]{1,6})?\\.json");

  private GroupFiles() {}

  /**
   * {@return the groups that the files of a directory give}
   *
   * @throws CompileException when a file is malformed, or two of them do not fit together
   */
  static ImmutableList<ProcessGroup> read(Path folder) {
    return groups(
        files(folder).stream()
            .map(
                file ->
                    Json.parse(SourceReader.read(file), new JsonErrors(DiagnosticCode.BAD_GROUP)))
            .toList());
  }

  /**
   * {@return the groups that some texts give, each as a file does}
   *
   * @throws CompileException when two of them do not fit together
   */
  static ImmutableList<ProcessGroup> groups(List<Json> texts) {
    var named = MultimapBuilder.linkedHashKeys().arrayListValues().<String, Json>build();
    texts.forEach(text -> text.fields().forEach(named::put));
    return Multimaps.asMap(named).entrySet().stream()
        .map(entry -> group(entry.getKey(), entry.getValue()))
        .collect(ImmutableList.toImmutableList());
  }

  private static ProcessGroup group(String name, List<Json> values) {
    var parts =
        values.stream()
            .flatMap(value -> rankLists(value).stream())
            .distinct()
            .collect(ImmutableList.toImmutableList());
    try {
      return new ProcessGroup(name, parts);
    } catch (IllegalArgumentException e) {
      throw values.getLast().wrong(String.valueOf(e.getMessage()));
    }
  }

  private static List<Path> files(Path folder) {
    try (var files = Files.list(folder)) {
      return files
          .filter(file -> FILE.matcher(String.valueOf(file.getFileName())).matches())
          .sorted()
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<ImmutableIntArray> rankLists(Json value) {
    var items = value.items();
    boolean nested = !items.isEmpty() && items.getFirst().isList();
    return (nested ? items : List.of(value))
        .stream().map(list -> ImmutableIntArray.copyOf(list.list(Json::intValue))).toList();
  }
}
