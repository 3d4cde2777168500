package dev.symplan.ir.text;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Mesh;
import dev.symplan.ir.ProcessGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Groups and lists of ranks as text: in full if that is short, in a shorter form otherwise. */
public final class RankText {
  /** More columns than a list takes in full. */
  private static final int WIDTH = 100;

  /** Fewer ranks are as short without a slice. */
  private static final int MIN_SLICE = 3;

  private RankText() {}

  /** {@return the declaration of a group} */
  static String group(ProcessGroup group) {
    var head = "group " + GraphLanguage.nameText(group.name()) + " = ";
    var full = parts(group, RankText::full);
    if (full.length() <= WIDTH) {
      return head + full;
    }
    return head + Mesh.of(group).map(RankText::mesh).orElseGet(() -> parts(group, RankText::list));
  }

  /** {@return a list of ranks, in brackets} */
  public static String list(List<Integer> ranks) {
    return list(ImmutableIntArray.copyOf(ranks));
  }

  /** {@return a list of ranks, in brackets} */
  static String list(ImmutableIntArray ranks) {
    var full = full(ranks);
    return full.length() <= WIDTH ? full : slices(ranks);
  }

  private static String parts(ProcessGroup group, Function<ImmutableIntArray, String> text) {
    return group.members().stream().map(text).collect(Collectors.joining(", "));
  }

  private static String mesh(Mesh mesh) {
    var dims = mesh.dims().stream().mapToObj(Integer::toString).collect(Collectors.joining(", "));
    return "mesh %s dim %s".formatted(full(mesh.sizes()), dims);
  }

  private static String full(ImmutableIntArray ranks) {
    return ranks.stream().mapToObj(Integer::toString).collect(Collectors.joining(", ", "[", "]"));
  }

  private static String slices(ImmutableIntArray ranks) {
    var items = new ArrayList<String>();
    for (int from = 0; from < ranks.length(); ) {
      int to = endOfSlice(ranks, from);
      if (to - from < MIN_SLICE) {
        items.add(Integer.toString(ranks.get(from)));
        from++;
      } else {
        int step = ranks.get(from + 1) - ranks.get(from);
        int end = Math.min(ranks.get(to - 1) + step, ProcessGroup.MAX_RANKS);
        items.add(ranks.get(from) + ":" + end + (step == 1 ? "" : ":" + step));
        from = to;
      }
    }
    return "[" + String.join(", ", items) + "]";
  }

  /** {@return the position behind the ranks from one on that are at equal distances, ascending} */
  private static int endOfSlice(ImmutableIntArray ranks, int from) {
    int to = from + 1;
    while (to < ranks.length()
        && ranks.get(to) > ranks.get(to - 1)
        && ranks.get(to) - ranks.get(to - 1) == ranks.get(from + 1) - ranks.get(from)) {
      to++;
    }
    return to;
  }
}
