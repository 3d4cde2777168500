package dev.symplan.planner.pack;

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

  /** Bytes live in each section. */
  final long[] live;

  private Items(int count, int sections, int[] first, int[] end, long[] size, long[] alignment) {
    this.count = count;
    this.sections = sections;
    this.first = first;
    this.end = end;
    this.size = size;
    this.alignment = alignment;
    live = new long[sections];
    var change = new long[sections + 1];
    for (int i = 0; i < count; i++) {
      change[first[i]] += size[i];
      change[end[i]] -= size[i];
    }
    long sum = 0;
    for (int s = 0; s < sections; s++) {
      sum += change[s];
      live[s] = sum;
    }
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

  /** {@return these items, in sections that are counted from the first one of theirs} */
  Items select(int[] positions) {
    int n = positions.length;
    int origin = Integer.MAX_VALUE;
    int last = 0;
    for (int i : positions) {
      origin = Math.min(origin, first[i]);
      last = Math.max(last, end[i]);
    }
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
    return new Items(n, last - origin, selectedFirst, selectedEnd, selectedSize, selectedAlignment);
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
    for (long bytes : live) {
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
