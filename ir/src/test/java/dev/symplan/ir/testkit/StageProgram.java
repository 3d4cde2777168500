package dev.symplan.ir.testkit;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A random program whose ranks run stages with different collectives, inputs and outputs. Some
 * collectives are between stages, on hosts with different numbers of ranks. Sums of ones and twos
 * are exact in it.
 *
 * @param hosts by rank, the number of its host
 * @param text the program
 */
public record StageProgram(ImmutableIntArray hosts, String text) {
  private static final List<String> KINDS =
      List.of(
          "all_reduce",
          "all_reduce",
          "all_reduce",
          "all_gather",
          "reduce_scatter",
          "all_to_all",
          "broadcast");

  /** A group, and the stages whose ranks are in it. */
  private record Group(String name, List<List<Integer>> parts, List<Integer> stages) {
    int size() {
      return parts.getFirst().size();
    }

    String declaration() {
      return "group %s = %s\n"
          .formatted(name, parts.stream().map(List::toString).collect(Collectors.joining(", ")));
    }
  }

  /** A collective, the n-th of all, in all stages of its group. */
  private record Event(Group group, String kind, DType dtype, int rows, int columns, int root) {}

  /**
   * {@return a program of two to four hosts}
   *
   * @param most how many ranks a host has at most
   * @param types of its tensors
   */
  public static StageProgram draw(Random random, int most, List<DType> types) {
    var hosts =
        IntStream.generate(() -> 1 + random.nextInt(most)).limit(2 + random.nextInt(3)).toArray();
    int ranks = IntStream.of(hosts).sum();
    var stages = stages(ranks, random);
    var groups = groups(stages, random);
    var events = new ArrayList<Event>();
    for (int i = 2 + random.nextInt(6); i > 0; i--) {
      events.add(event(groups.get(random.nextInt(groups.size())), types, random));
    }
    var text = new StringBuilder("graph version 1\n");
    groups.forEach(group -> text.append(group.declaration()));
    for (int s = 0; s < stages.size(); s++) {
      var own = stages.get(s);
      // Ranks of one stage may run different local code.
      int cut = random.nextInt(3) == 0 ? random.nextInt(own.size()) : 0;
      if (cut > 0) {
        text.append(graph(own.subList(0, cut), s, events, random));
      }
      text.append(graph(own.subList(cut, own.size()), s, events, random));
    }
    return new StageProgram(placed(hosts, random), text.toString());
  }

  /** Ranks fill hosts in order, or are anywhere. */
  private static ImmutableIntArray placed(int[] sizes, Random random) {
    var hosts =
        IntStream.range(0, sizes.length)
            .flatMap(host -> IntStream.generate(() -> host).limit(sizes[host]))
            .boxed()
            .collect(Collectors.toCollection(ArrayList::new));
    if (random.nextInt(3) == 0) {
      Collections.shuffle(hosts, random);
    }
    return ImmutableIntArray.copyOf(hosts);
  }

  /** Blocks of ranks, or any. */
  private static List<List<Integer>> stages(int ranks, Random random) {
    var order = IntStream.range(0, ranks).boxed().collect(Collectors.toCollection(ArrayList::new));
    if (random.nextInt(4) == 0) {
      Collections.shuffle(order, random);
    }
    var cuts = new TreeSet<Integer>();
    for (int i = random.nextInt(4); i > 0; i--) {
      cuts.add(1 + random.nextInt(ranks - 1));
    }
    cuts.add(ranks);
    var stages = new ArrayList<List<Integer>>();
    int from = 0;
    for (int to : cuts) {
      stages.add(List.copyOf(order.subList(from, to)));
      from = to;
    }
    return stages;
  }

  private static ImmutableList<Group> groups(List<List<Integer>> stages, Random random) {
    var groups = ImmutableList.<Group>builder();
    for (int s = 0; s < stages.size(); s++) {
      var own = stages.get(s);
      groups.add(new Group("own" + s, List.of(own), List.of(s)));
      var sizes = IntStream.rangeClosed(1, own.size()).filter(n -> own.size() % n == 0).toArray();
      int size = sizes[random.nextInt(sizes.length)];
      groups.add(new Group("part" + s, split(own, size), List.of(s)));
    }
    var all = IntStream.range(0, stages.size()).boxed().toList();
    var ranks = new ArrayList<>(stages.stream().flatMap(List::stream).toList());
    if (random.nextBoolean()) {
      Collections.sort(ranks);
    }
    groups.add(new Group("all", List.of(ranks), all));
    for (int s = 0; s + 1 < stages.size(); s++) {
      var from = stages.get(s);
      var to = stages.get(s + 1);
      var both = List.of(s, s + 1);
      if (from.size() == to.size()) {
        var pairs =
            IntStream.range(0, from.size()).mapToObj(i -> List.of(from.get(i), to.get(i))).toList();
        groups.add(new Group("pairs" + s, pairs, both));
      } else {
        var together = new ArrayList<>(from);
        together.addAll(to);
        groups.add(new Group("both" + s, List.of(together), both));
      }
    }
    return groups.build();
  }

  private static List<List<Integer>> split(List<Integer> ranks, int size) {
    return IntStream.range(0, ranks.size() / size)
        .mapToObj(part -> ranks.subList(part * size, (part + 1) * size))
        .toList();
  }

  private static Event event(Group group, List<DType> types, Random random) {
    return new Event(
        group,
        KINDS.get(random.nextInt(KINDS.size())),
        types.get(random.nextInt(types.size())),
        group.size() * (1 + random.nextInt(3)),
        1 + random.nextInt(70),
        random.nextInt(group.size()));
  }

  private static String graph(List<Integer> ranks, int stage, List<Event> events, Random random) {
    var params = new ArrayList<String>();
    var body = new StringBuilder();
    var outputs = new ArrayList<String>();
    for (int e = 0; e < events.size(); e++) {
      var event = events.get(e);
      if (!event.group().stages().contains(stage) && random.nextInt(4) > 0) {
        continue;
      }
      params.add(
          "x%s: %s[%s, %s]".formatted(e, event.dtype().shortName(), event.rows(), event.columns()));
      var operand = "x" + e;
      for (int i = random.nextInt(3); i > 0; i--) {
        body.append("  y%s_%s = aten::mul.Tensor(%s, x%s)\n".formatted(e, i, operand, e));
        operand = "y%s_%s".formatted(e, i);
      }
      if (!event.group().stages().contains(stage)) {
        body.append("  o%s = aten::relu(%s)\n".formatted(e, operand));
        outputs.add("o" + e);
        continue;
      }
      body.append("  r%s = _c10d_functional::%s\n".formatted(e, call(event, operand)));
      body.append("  w%s = _c10d_functional::wait_tensor(r%s)\n".formatted(e, e));
      if (random.nextInt(3) == 0) {
        body.append("  z%s = aten::neg(w%s)\n".formatted(e, e));
        outputs.add("z" + e);
      } else {
        outputs.add("w" + e);
      }
    }
    if (outputs.isEmpty()) {
      params.add("x: f32[4]");
      body.append("  o = aten::relu(x)\n");
      outputs.add("o");
    }
    return "graph g(%s) ranks %s {\n%s  return %s\n}\n"
        .formatted(String.join(", ", params), ranks, body, String.join(", ", outputs));
  }

  private static String call(Event event, String operand) {
    int size = event.group().size();
    var name = event.group().name();
    return switch (event.kind()) {
      case "all_gather" -> "all_gather_into_tensor(%s, %s, \"%s\")".formatted(operand, size, name);
      case "reduce_scatter" ->
          "reduce_scatter_tensor(%s, \"sum\", %s, \"%s\")".formatted(operand, size, name);
      case "all_to_all" -> "all_to_all_single(%s, [], [], \"%s\")".formatted(operand, name);
      case "broadcast" -> "broadcast(%s, %s, \"%s\")".formatted(operand, event.root(), name);
      default -> "all_reduce(%s, \"sum\", \"%s\")".formatted(operand, name);
    };
  }
}
