package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Longs;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.RankProgram;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * The inputs and outputs of one graph of a program: ranges of the program's inputs and outputs,
 * from the first index to the one after the last. An input of several graphs belongs to the first
 * graph that takes it.
 *
 * @param independent whether neither this graph nor a later one needs what an earlier graph made
 */
public record GraphSignature(
    String name,
    int firstInput,
    int endInput,
    int firstOutput,
    int endOutput,
    boolean independent) {

  /** {@return the graphs of an executable, in the order in which they are planned} */
  static ImmutableList<GraphSignature> allOf(Executable executable) {
    var borders = executable.ranks().stream().map(GraphSignature::borders).toList();
    var first = executable.ranks().getFirst();
    var own = borders.getFirst();
    return IntStream.rangeClosed(0, own.size())
        .mapToObj(
            g ->
                new GraphSignature(
                    g == 0 ? executable.name() : own.get(g - 1).graph(),
                    g == 0 ? 0 : own.get(g - 1).inputs(),
                    g == own.size() ? first.inputs().size() : own.get(g).inputs(),
                    g == 0 ? 0 : own.get(g - 1).outputs(),
                    g == own.size() ? first.outputs().size() : own.get(g).outputs(),
                    g == 0 || borders.stream().allMatch(rank -> rank.get(g - 1).independent())))
        .collect(ImmutableList.toImmutableList());
  }

  static GraphSignature bucket(
      ImmutableList<GraphSignature> graphs, String graph, String size, long atLeast) {
    var prefix = "%s_%s_".formatted(graph, size);
    var buckets = new TreeMap<Long, GraphSignature>();
    for (var version : graphs) {
      if (version.name().startsWith(prefix)) {
        Optional.ofNullable(Longs.tryParse(version.name().substring(prefix.length())))
            .ifPresent(value -> buckets.put(value, version));
      }
    }
    return Optional.ofNullable(buckets.ceilingEntry(atLeast))
        .map(Map.Entry::getValue)
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    buckets.isEmpty()
                        ? "no graph has the name '%sN'; graphs: %s"
                            .formatted(prefix, graphs.stream().map(GraphSignature::name).toList())
                        : "graph '%s' has no bucket for %s = %s; it has %s"
                            .formatted(graph, size, atLeast, buckets.keySet())));
  }

  private static ImmutableList<Border> borders(RankProgram program) {
    return program.instructions().stream()
        .filter(Border.class::isInstance)
        .map(Border.class::cast)
        .collect(ImmutableList.toImmutableList());
  }
}
