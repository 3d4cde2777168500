package dev.symplan.ir.fx;

import com.google.common.collect.Comparators;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Span;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Which results of which statement are taken out by {@code name = statement[i]}, so that an op's
 * results can be named when it is built.
 */
final class Getitems {

  /** One result that is taken out. */
  record Item(String name, String annotation, Span span) {}

  /** A statement that only takes a result out of another. */
  record Path(String root, ImmutableList<Integer> indices) {}

  /** No op has so many results. */
  private static final long MAX_RESULTS = 100_000;

  private static final Comparator<Iterable<Integer>> ORDER =
      Comparators.lexicographical(Comparator.<Integer>naturalOrder());

  private final Map<String, TreeMap<ImmutableList<Integer>, Item>> items = new HashMap<>();
  private final Map<String, Path> paths = new LinkedHashMap<>();

  Getitems(List<FxFunction.Statement> statements) {
    for (var statement : statements) {
      if (statement.value() instanceof FxExpr.Index(FxExpr.Name(String of), FxExpr.Int(long i))
          && i >= 0
          && i < MAX_RESULTS) {
        add(statement, of, (int) i);
      }
    }
    // What is taken apart further is no result itself.
    for (var path : paths.entrySet()) {
      if (!of(path.getKey()).isEmpty()) {
        of(path.getValue().root()).remove(path.getValue().indices());
      }
    }
    flatten();
  }

  private void add(FxFunction.Statement statement, String of, int index) {
    paths.put(statement.name(), new Path(of, ImmutableList.of(index)));
    of(of)
        .putIfAbsent(
            ImmutableList.of(index),
            new Item(statement.name(), statement.annotation(), statement.span()));
  }

  /** {@code b = a[1]; c = b[0]} makes c the result [1, 0] of a. */
  private void flatten() {
    for (var entry : List.copyOf(paths.entrySet())) {
      var path = entry.getValue();
      if (paths.get(path.root()) instanceof Path outer) {
        var indices =
            ImmutableList.<Integer>builder().addAll(outer.indices()).addAll(path.indices()).build();
        @Nullable Item item = of(path.root()).get(path.indices());
        paths.put(entry.getKey(), new Path(outer.root(), indices));
        if (item != null) {
          of(outer.root()).put(indices, item);
        }
      }
    }
  }

  /** {@return whether a statement only takes a result out of another} */
  boolean isGetitem(String name) {
    return paths.containsKey(name);
  }

  Path path(String name) {
    return Objects.requireNonNull(paths.get(name));
  }

  /** {@return the results of a statement that are taken out, by their position} */
  Map<ImmutableList<Integer>, Item> of(String name) {
    return items.computeIfAbsent(name, n -> new TreeMap<>(ORDER));
  }
}
