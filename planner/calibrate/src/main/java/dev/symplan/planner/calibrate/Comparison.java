package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Measured times of one kind of collective, side by side.
 *
 * @param implementations Symplan's variants in their order, then those of other libraries
 * @param rows by bytes of one rank's operand
 * @param where the machine that it was measured on, and the date
 */
record Comparison(
    Kind kind,
    String dtype,
    int ranks,
    ImmutableList<String> implementations,
    ImmutableSortedMap<Long, Row> rows,
    String where) {

  /** More than what two runs of the same differ by. */
  static final double NOISE = 0.03;

  /**
   * One size.
   *
   * @param micros by implementation
   * @param predicted by variant
   * @param picked the planner's choice; it may not have been measured
   */
  record Row(
      ImmutableMap<String, Double> micros, ImmutableMap<String, Double> predicted, String picked) {

    String fastest() {
      return micros.entrySet().stream().min(Map.Entry.comparingByValue()).orElseThrow().getKey();
    }

    boolean isPickMeasured() {
      return micros.containsKey(picked);
    }

    /** {@return how much longer what is picked takes than the fastest; NaN if not measured} */
    double loss() {
      double best = micros.getOrDefault(fastest(), Double.NaN);
      return micros.getOrDefault(picked, Double.NaN) / best - 1;
    }
  }

  private record Group(Kind kind, String dtype, int ranks) {}

  /** {@return one comparison for each kind, element type and world size} */
  static ImmutableList<Comparison> of(Points points, Target target) {
    var groups =
        new TreeMap<Group, List<Point>>(
            Comparator.comparing(Group::kind)
                .thenComparing(Group::dtype)
                .thenComparing(Group::ranks, Comparator.reverseOrder()));
    for (var point : points.list()) {
      if (point.subject() instanceof Subject.Transfer t) {
        groups
            .computeIfAbsent(new Group(t.kind(), point.dtype(), t.ranks()), _ -> new ArrayList<>())
            .add(point);
      }
    }
    return groups.entrySet().stream()
        .map(entry -> of(entry.getKey(), entry.getValue(), target))
        .collect(ImmutableList.toImmutableList());
  }

  private static Comparison of(Group group, List<Point> points, Target target) {
    var times = new TreeMap<Long, Map<String, List<Double>>>();
    var names = new LinkedHashMap<String, Integer>();
    for (var point : points) {
      if (point.subject() instanceof Subject.Transfer t) {
        var name = t.implementation();
        names.putIfAbsent(
            name, Variant.ofText(name).map(Variant::ordinal).orElse(Variant.values().length));
        times
            .computeIfAbsent(t.bytes(), _ -> new LinkedHashMap<>())
            .computeIfAbsent(name, _ -> new ArrayList<>())
            .add(point.micros());
      }
    }
    var rows = ImmutableSortedMap.<Long, Row>naturalOrder();
    times.forEach(
        (bytes, byName) -> {
          var micros = ImmutableMap.<String, Double>builder();
          byName.forEach((name, list) -> micros.put(name, Measurements.median(list)));
          rows.put(bytes, row(group, bytes, micros.buildOrThrow(), target));
        });
    return new Comparison(
        group.kind(),
        group.dtype(),
        group.ranks(),
        names.entrySet().stream()
            .sorted(Map.Entry.comparingByValue())
            .map(Map.Entry::getKey)
            .collect(ImmutableList.toImmutableList()),
        rows.buildOrThrow(),
        String.join(
            ", ",
            points.stream()
                .flatMap(p -> List.of(p.gpu(), p.date()).stream())
                .filter(word -> !word.isEmpty())
                .distinct()
                .toList()));
  }

  private static Row row(
      Group group, long bytes, ImmutableMap<String, Double> micros, Target target) {
    var dtype = DType.ofShortName(group.dtype()).orElse(DType.BF16);
    var plan =
        BenchPrograms.plan(
            BenchPrograms.collective(group.kind(), dtype, bytes, group.ranks()), target);
    var predicted = ImmutableMap.<String, Double>builder();
    var picked = "";
    for (var verdict : BenchPrograms.verdicts(plan)) {
      if (verdict.reason().eligible()) {
        predicted.put(verdict.variant().text(), verdict.totalMicros());
      }
      if (verdict.chosen()) {
        picked = verdict.variant().text();
      }
    }
    return new Row(micros, predicted.buildOrThrow(), picked);
  }
}
