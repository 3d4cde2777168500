package dev.symplan.ir.fx;

import com.google.common.collect.Comparators;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Span;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The results that {@code name = statement[i]} takes out of each statement, so that an op's results
 * have their names when it is built.
 */
final class Getitems {

  /** One result that is taken out. */
  record Item(String name, Optional<FxType> type, Span span) {}

  /** {@code root[i][j]}: a result within the results of another statement. */
  record Path(String root, ImmutableList<Integer> indices) {}

  /** No op has so many results. */
  private static final long MAX_INDEX = 1 << 16;

  /** Results are lists of tensors at most. */
  private static final int MAX_DEPTH = 8;

  private static final Comparator<Iterable<Integer>> ORDER =
      Comparators.lexicographical(Comparator.<Integer>naturalOrder());

  private static final SortedMap<ImmutableList<Integer>, Item> NONE =
      Collections.unmodifiableSortedMap(new TreeMap<>(ORDER));

  private final Map<String, SortedMap<ImmutableList<Integer>, Item>> items = new HashMap<>();
  private final Map<String, Path> paths = new HashMap<>();

  Getitems(List<FxFunction.Statement> statements) {
    Set<String> takenApart = new HashSet<>();
    for (var statement : statements) {
      if (statement.value() instanceof FxExpr.Index index) {
        path(index)
            .flatMap(this::flat)
            .ifPresent(
                path -> {
                  @Nullable Path outer = paths.put(statement.name(), path);
                  if (outer == null && index.of() instanceof FxExpr.Name(String of)) {
                    takenApart.add(of);
                  }
                });
      }
    }
    for (var statement : statements) {
      @Nullable Path path = paths.get(statement.name());
      // A list that is taken apart further is not a result itself.
      if (path != null
          && statement.value() instanceof FxExpr.Index
          && !takenApart.contains(statement.name())) {
        items
            .computeIfAbsent(path.root(), root -> new TreeMap<>(ORDER))
            .putIfAbsent(
                path.indices(), new Item(statement.name(), statement.type(), statement.span()));
      }
    }
  }

  /** {@return the path that an expression writes out, if it is one} */
  static Optional<Path> path(FxExpr.Index expr) {
    var reversed = ImmutableList.<Integer>builder();
    FxExpr at = expr;
    while (at instanceof FxExpr.Index(FxExpr of, FxExpr index)) {
      if (!(index instanceof FxExpr.Int(long i)) || i < 0 || i >= MAX_INDEX) {
        return Optional.empty();
      }
      reversed.add((int) i);
      at = of;
    }
    return at instanceof FxExpr.Name(String root)
        ? Optional.of(new Path(root, reversed.build().reverse()))
        : Optional.empty();
  }

  /** {@code b = a[1]; c = b[0]} makes c the result [1, 0] of a. */
  private Optional<Path> flat(Path path) {
    @Nullable Path outer = paths.get(path.root());
    if (outer == null) {
      return Optional.of(path);
    }
    var indices =
        ImmutableList.<Integer>builder().addAll(outer.indices()).addAll(path.indices()).build();
    return indices.size() <= MAX_DEPTH
        ? Optional.of(new Path(outer.root(), indices))
        : Optional.empty();
  }

  /** {@return the place of the result that a statement takes out, if that is what it does} */
  Optional<Path> path(String name) {
    return Optional.ofNullable(paths.get(name));
  }

  /** {@return the results of a statement that are taken out, by their place} */
  SortedMap<ImmutableList<Integer>, Item> of(String name) {
    return items.getOrDefault(name, NONE);
  }
}
