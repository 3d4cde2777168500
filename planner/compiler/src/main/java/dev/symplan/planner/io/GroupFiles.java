package dev.symplan.planner.io;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
    Map<String, Set<ImmutableIntArray>> parts = new LinkedHashMap<>();
    Map<String, Path> files = new LinkedHashMap<>();
    for (var file : files(folder)) {
      for (var entry :
          CaseJson.object(file, "{\"NAME\": [0, 1]}, with the ranks of each group").properties()) {
        parts
            .computeIfAbsent(entry.getKey(), _ -> new LinkedHashSet<>())
            .addAll(rankLists(file, entry.getKey(), entry.getValue()));
        files.put(entry.getKey(), file);
      }
    }
    var groups = ImmutableList.<ProcessGroup>builder();
    parts.forEach(
        (name, lists) -> {
          try {
            groups.add(new ProcessGroup(name, ImmutableList.copyOf(lists)));
          } catch (IllegalArgumentException e) {
            throw CaseJson.wrong(
                files.getOrDefault(name, folder),
                DiagnosticCode.BAD_GROUP,
                String.valueOf(e.getMessage()),
                "");
          }
        });
    return groups.build();
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

  private static List<ImmutableIntArray> rankLists(Path file, String name, JsonNode value) {
    var lists = new ArrayList<ImmutableIntArray>();
    boolean nested = value.isArray() && !value.isEmpty() && value.get(0).isArray();
    for (var list : nested ? value : List.of(value)) {
      var ranks = ImmutableIntArray.builder();
      for (var rank : list) {
        if (!rank.isIntegralNumber() || !rank.canConvertToInt()) {
          throw noRanks(file, name);
        }
        ranks.add(rank.intValue());
      }
      if (!list.isArray()) {
        throw noRanks(file, name);
      }
      lists.add(ranks.build());
    }
    return lists;
  }

  private static CompileException noRanks(Path file, String name) {
    return CaseJson.wrong(
        file,
        DiagnosticCode.BAD_GROUP,
        "group '%s' is not a list of ranks".formatted(name),
        "write {\"%s\": [0, 1]}".formatted(name));
  }
}
