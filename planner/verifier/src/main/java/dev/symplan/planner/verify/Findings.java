package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Parallel;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** Collects violations; of one rule no more than a person reads. */
final class Findings {
  private static final int PER_RULE = 20;

  /** The check of one item. */
  @FunctionalInterface
  interface ItemCheck {
    void check(int item, Findings found);
  }

  private final List<Violation> violations = new ArrayList<>();
  private final Map<Rule, Integer> counts = new EnumMap<>(Rule.class);
  private int count;

  private static Findings of(Consumer<Findings> check) {
    var findings = new Findings();
    check.accept(findings);
    return findings;
  }

  /** Adds what some checks find, each by itself, in their order. */
  void addAll(Stream<Consumer<Findings>> checks) {
    Parallel.all(checks.<Supplier<Findings>>map(check -> () -> of(check)).toList())
        .forEach(this::addAll);
  }

  /** Adds what a check finds in each of {@code count} items, in their order. */
  void addAll(int count, ItemCheck check) {
    Parallel.parts(
            count,
            (from, to) ->
                of(
                    found -> {
                      for (int i = from; i < to; i++) {
                        check.check(i, found);
                      }
                    }))
        .forEach(this::addAll);
  }

  private void addAll(Findings others) {
    others.violations.forEach(
        found -> add(found.rule(), found.rank(), found.step(), found.message(), found.trace()));
  }

  /** Adds a violation of the plan as a whole. */
  void add(Rule rule, String message) {
    add(rule, -1, -1, message, ImmutableList.of());
  }

  /** Adds a violation of a rank's plan that no single step commits. */
  void add(Rule rule, int rank, String message) {
    add(rule, rank, -1, message, ImmutableList.of());
  }

  void add(Rule rule, int rank, int step, String message, List<String> trace) {
    count++;
    if (counts.merge(rule, 1, Integer::sum) <= PER_RULE) {
      violations.add(new Violation(rule, rank, step, message, ImmutableList.copyOf(trace)));
    }
  }

  /** {@return the number of violations up to now, those beyond what is kept included} */
  int count() {
    return count;
  }

  ImmutableList<Violation> violations() {
    return ImmutableList.copyOf(violations);
  }
}
