package dev.symplan.planner.pack;

import java.util.ArrayList;
import java.util.List;

/** Buffers to pack. */
public record PackingProblem(List<long[]> rows) {
  public static Builder builder() {
    return new Builder();
  }

  long start(int i) {
    return rows.get(i)[0];
  }

  long end(int i) {
    return rows.get(i)[1];
  }

  long size(int i) {
    long a = rows.get(i)[3];
    return (rows.get(i)[2] + a - 1) / a * a;
  }

  boolean overlap(int i, int j) {
    return start(i) < end(j) && start(j) < end(i);
  }

  public long lowerBound() {
    return bound(rows, List.of());
  }

  long bound(List<long[]> a, List<long[]> b) {
    var events = new java.util.TreeMap<Long, Long>();
    for (var list : List.of(a, b)) {
      for (var r : list) {
        long size = (r[2] + r[3] - 1) / r[3] * r[3];
        events.merge(r[0], size, Long::sum);
        events.merge(r[1], -size, Long::sum);
      }
    }
    long live = 0;
    long max = 0;
    for (long delta : events.values()) {
      live += delta;
      max = Math.max(max, live);
    }
    return max;
  }

  /** Collects buffers. */
  public static final class Builder {
    private final List<long[]> rows = new ArrayList<>();

    public Builder add(int start, int end, long size, long alignment) {
      rows.add(new long[] {start, end, size, alignment});
      return this;
    }

    public PackingProblem build() {
      return new PackingProblem(rows);
    }
  }
}
