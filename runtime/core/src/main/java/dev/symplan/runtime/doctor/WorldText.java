package dev.symplan.runtime.doctor;

import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.launch.Host;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A diagnosis of several hosts for people: their common facts and their differences. */
public final class WorldText {

  /** A difference that is certain, and that shows in logs. */
  private static final double CLOCK_MILLIS = 100;

  private final WorldDiagnosis world;

  private WorldText(WorldDiagnosis world) {
    this.world = world;
  }

  /** {@return the text, ended by a line feed} */
  public static String print(WorldDiagnosis world) {
    var text = new WorldText(world);
    return text.hosts() + text.meeting() + text.facts();
  }

  private String hosts() {
    var ranks = by(rank -> world.hosts().get(rank).id());
    var lines = new StringBuilder();
    lines.append(
        "%s on %s\n"
            .formatted(
                Units.count(world.hosts().size(), "process"), Units.count(ranks.size(), "host")));
    for (var own : ranks.values()) {
      lines.append("  %s: %s\n".formatted(host(own.getFirst()).name(), ranks(own)));
    }
    return lines.toString();
  }

  private Host host(int rank) {
    return world.hosts().get(rank);
  }

  private <K> Map<K, List<Integer>> by(Function<Integer, K> key) {
    return IntStream.range(0, world.hosts().size())
        .boxed()
        .collect(Collectors.groupingBy(key, LinkedHashMap::new, Collectors.toList()));
  }

  private static String ranks(List<Integer> ranks) {
    return "rank%s %s"
        .formatted(
            ranks.size() == 1 ? "" : "s",
            ranks.stream().map(Object::toString).collect(Collectors.joining(", ")));
  }

  private String meeting() {
    var lines = new StringBuilder();
    lines.append(
        String.format(
            Locale.ROOT, "All meet in the store of rank 0 within %.1f ms.\n", world.meeting()));
    var late = new ArrayList<String>();
    by(rank -> host(rank).id())
        .forEach(
            (_, own) -> {
              double ahead = world.clocks().get(own.getFirst());
              if (Math.abs(ahead) > CLOCK_MILLIS + world.clockError()) {
                late.add(
                    String.format(
                        Locale.ROOT,
                        "The clock of %s is %.1f s %s that of %s.\n",
                        host(own.getFirst()).name(),
                        Math.abs(ahead) / 1e3,
                        ahead > 0 ? "ahead of" : "behind",
                        host(0).name()));
              }
            });
    lines.append(
        late.isEmpty()
            ? String.format(
                Locale.ROOT,
                "Clocks agree within %.0f ms.\n",
                CLOCK_MILLIS + 2 * world.clockError())
            : String.join("", late));
    return lines.toString();
  }

  private String facts() {
    var names = new LinkedHashSet<String>();
    world.facts().forEach(facts -> names.addAll(facts.keySet()));
    var same = new ArrayList<String>();
    var different = new StringBuilder();
    for (var name : names) {
      var values = by(rank -> world.facts().get(rank).getOrDefault(name, "not set"));
      if (values.size() == 1) {
        same.add("  %s: %s\n".formatted(name, values.keySet().iterator().next()));
      } else {
        different.append("  ").append(name).append('\n');
        values.forEach(
            (value, own) -> different.append("    %s: %s\n".formatted(ranks(own), value)));
      }
    }
    return "\nThe same everywhere:\n"
        + String.join("", same)
        + (different.isEmpty() ? "\nNothing differs.\n" : "\nDifferent:\n" + different);
  }
}
