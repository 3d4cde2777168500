package dev.symplan.planner.pack;

import com.google.common.primitives.Ints;
import com.google.common.primitives.Longs;
import java.util.ArrayList;
import java.util.List;

/**
 * The buffers of a problem, or of a part of it, as the algorithms see them: in sections of time,
 * with padded sizes.
 */
final class Items {
  final int count;
  final int sections;
  final int[] first;
  final int[] end;
  final long[] size;
  final long[] alignment;

  private Items(int count, int sections, int[] first, int[] end, long[] size, long[] alignment) {
    this.count = count;
    this.sections = sections;
    this.first = first;
    this.end = end;
    this.size = size;
    this.alignment = alignment;
  }

  /** {@return the bytes live in each section} */
  long[] live() {
    var live = new long[sections];
    for (int i = 0; i < count; i++) {
      live[first[i]] += size[i];
      if (end[i] < sections) {
        live[end[i]] -= size[i];
      }
    }
    for (int s = 1; s < sections; s++) {
      live[s] += live[s - 1];
    }
    return live;
  }

  /** {@return the buffers at positions {@code [from, to)}, in the sections of all} */
  static Items of(PackingProblem problem, Sections sections, int from, int to) {
    int n = to - from;
    var first = new int[n];
    var end = new int[n];
    var size = new long[n];
    var alignment = new long[n];
    for (int i = 0; i < n; i++) {
      first[i] = sections.first(from + i);
      end[i] = sections.end(from + i);
      size[i] = problem.paddedSize(from + i);
      alignment[i] = problem.alignment(from + i);
    }
    return new Items(n, sections.count(), first, end, size, alignment);
  }

  /** {@return some of these items, in the same sections} */
  Items subset(int[] positions) {
    return select(positions, 0, sections);
  }

  /** {@return some of these items, in the sections that they need} */
  Items part(int[] positions) {
    int origin = Integer.MAX_VALUE;
    int stop = 0;
    for (int i : positions) {
      origin = Math.min(origin, first[i]);
      stop = Math.max(stop, end[i]);
    }
    return select(positions, origin, stop);
  }

  /** {@return these items and others of the same sections, the others last} */
  Items concat(Items other) {
    return new Items(
        count + other.count,
        sections,
        Ints.concat(first, other.first),
        Ints.concat(end, other.end),
        Longs.concat(size, other.size),
        Longs.concat(alignment, other.alignment));
  }

  /** {@return some of these items, each cut to the sections of {@code [from, to)}} */
  Items window(int[] positions, int from, int to) {
    var cut = select(positions, from, to);
    var cutFirst = cut.first;
    var cutEnd = cut.end;
    for (int k = 0; k < cut.count; k++) {
      cutFirst[k] = Math.max(cutFirst[k], 0);
      cutEnd[k] = Math.min(cutEnd[k], to - from);
    }
    return new Items(cut.count, to - from, cutFirst, cutEnd, cut.size, cut.alignment);
  }

  private Items select(int[] positions, int origin, int stop) {
    int n = positions.length;
    var selectedFirst = new int[n];
    var selectedEnd = new int[n];
    var selectedSize = new long[n];
    var selectedAlignment = new long[n];
    for (int k = 0; k < n; k++) {
      int i = positions[k];
      selectedFirst[k] = first[i] - origin;
      selectedEnd[k] = end[i] - origin;
      selectedSize[k] = size[i];
      selectedAlignment[k] = alignment[i];
    }
    return new Items(n, stop - origin, selectedFirst, selectedEnd, selectedSize, selectedAlignment);
  }

  /**
   * {@return the items of each component: items of different ones share no section, and those of
   * one cannot be separated so}
   */
  List<int[]> components() {
    var crossing = new int[sections + 1];
    for (int i = 0; i < count; i++) {
      crossing[first[i] + 1]++;
      crossing[end[i]]--;
    }
    var componentOf = new int[sections];
    int components = 0;
    int sum = 0;
    for (int s = 0; s < sections; s++) {
      sum += crossing[s];
      if (s > 0 && sum == 0) {
        components++;
      }
      componentOf[s] = components;
    }
    var sizes = new int[components + 1];
    for (int i = 0; i < count; i++) {
      sizes[componentOf[first[i]]]++;
    }
    var found = new ArrayList<int[]>();
    for (int c = 0; c <= components; c++) {
      found.add(new int[sizes[c]]);
    }
    for (int i = count - 1; i >= 0; i--) {
      int c = componentOf[first[i]];
      found.get(c)[--sizes[c]] = i;
    }
    return found;
  }

  /** {@return these items at these offsets, without the padding that would leave the arena} */
  Items clipped(long[] offsets, long arena) {
    var clipped = size.clone();
    for (int i = 0; i < count; i++) {
      clipped[i] = Math.min(clipped[i], arena - offsets[i]);
    }
    return new Items(count, sections, first, end, clipped, alignment);
  }

  long maxLive() {
    long max = 0;
    for (long bytes : live()) {
      max = Math.max(max, bytes);
    }
    return max;
  }

  long height(long[] offsets) {
    long height = 0;
    for (int i = 0; i < count; i++) {
      height = Math.max(height, offsets[i] + size[i]);
    }
    return height;
  }
}
