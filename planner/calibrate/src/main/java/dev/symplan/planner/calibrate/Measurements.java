package dev.symplan.planner.calibrate;

import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Variant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;

/** Points, by what they are of; the median where there are several of the same. */
final class Measurements {

  /** The subject of one curve. */
  record Key(Kind kind, Variant variant, int ranks) {
    static final Comparator<Key> ORDER =
        Comparator.comparing(Key::kind).thenComparing(Key::variant).thenComparing(Key::ranks);
  }

  private final Points points;
  private final SortedMap<Key, SortedMap<Long, Double>> collectives;

  Measurements(Points points) {
    this.points = points;
    var times = new TreeMap<Key, SortedMap<Long, List<Double>>>(Key.ORDER);
    for (var point : points.list()) {
      if (point.subject() instanceof Subject.Collective c) {
        times
            .computeIfAbsent(new Key(c.kind(), c.variant(), c.ranks()), key -> new TreeMap<>())
            .computeIfAbsent(c.bytes(), bytes -> new ArrayList<>())
            .add(point.micros());
      }
    }
    collectives = new TreeMap<>(Key.ORDER);
    times.forEach((key, bySize) -> collectives.put(key, medians(bySize)));
  }

  private static <K extends Comparable<K>> SortedMap<K, Double> medians(
      Map<K, List<Double>> times) {
    var medians = new TreeMap<K, Double>();
    times.forEach((key, list) -> medians.put(key, median(list)));
    return medians;
  }

  /** {@return microseconds of each curve's points, by bytes of one rank's operands} */
  SortedMap<Key, SortedMap<Long, Double>> collectives() {
    return Collections.unmodifiableSortedMap(collectives);
  }

  /** {@return microseconds of a barrier, by ranks} */
  SortedMap<Integer, Double> barriers() {
    var times = new TreeMap<Integer, List<Double>>();
    for (var point : points.list()) {
      if (point.subject() instanceof Subject.Barrier(int ranks)) {
        times.computeIfAbsent(ranks, r -> new ArrayList<>()).add(point.micros());
      }
    }
    return medians(times);
  }

  List<Point> of(Predicate<Subject> wanted) {
    return points.list().stream().filter(point -> wanted.test(point.subject())).toList();
  }

  /** {@return where points come from, for people} */
  String source(List<Point> found) {
    return "%s: %s %s%s%s"
        .formatted(
            words(found, Point::file, ""),
            found.size(),
            found.size() == 1 ? "point" : "points",
            words(found, Point::gpu, " on "),
            words(found, Point::date, ", "));
  }

  String sourceOf(Key key) {
    return source(
        of(
            subject ->
                subject instanceof Subject.Collective c
                    && new Key(c.kind(), c.variant(), c.ranks()).equals(key)));
  }

  String sourceOfCopyEngines() {
    return source(
        of(
            subject ->
                subject instanceof Subject.Collective c && c.variant() == Variant.COPY_ENGINE));
  }

  private static String words(List<Point> found, Function<Point, String> of, String before) {
    var words = found.stream().map(of).filter(word -> !word.isEmpty()).distinct().sorted().toList();
    return words.isEmpty() ? "" : before + String.join(", ", words);
  }

  static double median(List<Double> values) {
    var sorted = values.stream().mapToDouble(value -> value).toArray();
    Arrays.sort(sorted);
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
