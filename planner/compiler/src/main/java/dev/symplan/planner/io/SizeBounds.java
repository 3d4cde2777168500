package dev.symplan.planner.io;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.math.LongMath;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import java.math.RoundingMode;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Bounds of symbolic sizes, each on its own ({@code u0}) or of their sum ({@code u0+u1}), as the
 * splits of an exchange add up to its rows.
 */
final class SizeBounds {
  private final ImmutableMap<String, Long> values;
  private final Map<String, Long> single = new LinkedHashMap<>();

  private SizeBounds(ImmutableMap<String, Long> values) {
    this.values = values;
  }

  /**
   * {@return a bound for each size} Those of a sum have even parts of it, less where they have
   * smaller bounds of their own.
   *
   * @param values of sizes that are known
   * @throws CompileException when a size is in several sums, twice in one, or has no name, or
   *     values are more than their sum
   */
  static ImmutableMap<String, Long> ofEach(
      ImmutableMap<String, Long> values, ImmutableMap<String, Long> bounds) {
    if (bounds.keySet().stream().noneMatch(SizeBounds::isSum)) {
      return bounds;
    }
    var parts = new SizeBounds(values);
    bounds.forEach(
        (name, bound) -> {
          if (!isSum(name)) {
            parts.single.put(name, bound);
          }
        });
    var shared = new LinkedHashMap<String, Long>();
    bounds.forEach(
        (name, bound) -> {
          if (isSum(name)) {
            for (var size : parts.share(name, bound).entrySet()) {
              if (shared.put(size.getKey(), size.getValue()) != null) {
                throw wrong(name, bound, "'%s' is also in another sum".formatted(size.getKey()));
              }
            }
          }
        });
    return ImmutableMap.<String, Long>builder()
        .putAll(parts.single)
        .putAll(shared)
        .buildKeepingLast();
  }

  /** {@return the sizes that a bound is of} */
  static List<String> names(String sum) {
    return Splitter.on('+').trimResults().splitToList(sum);
  }

  private static boolean isSum(String name) {
    return name.contains("+");
  }

  private Map<String, Long> share(String sum, long bound) {
    var names = names(sum);
    if (names.contains("") || ImmutableSet.copyOf(names).size() < names.size()) {
      throw wrong(sum, bound, "the sizes of a sum must differ, as in u0+u1");
    }
    var open = names.stream().filter(name -> !values.containsKey(name)).toList();
    long left = bound;
    for (var name : names) {
      left -= values.getOrDefault(name, 0L);
    }
    if (left < 0) {
      throw wrong(sum, bound, "the values that --dim gives are more");
    }
    return share(open, left);
  }

  private Map<String, Long> share(List<String> names, long bound) {
    var shares = new LinkedHashMap<String, Long>();
    long left = bound;
    int count = names.size();
    // Larger sizes share what the small bounds leave.
    for (var name : names.stream().sorted(Comparator.comparing(this::most)).toList()) {
      long even = LongMath.divide(left, count, RoundingMode.CEILING);
      long share = Math.min(even, most(name));
      shares.put(name, share);
      left -= share;
      count--;
    }
    return shares;
  }

  private long most(String name) {
    return single.getOrDefault(name, Long.MAX_VALUE);
  }

  private static CompileException wrong(String sum, long bound, String why) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_OPTION,
            Span.NONE,
            "--dim-max %s=%s: %s".formatted(sum, bound, why)));
  }
}
