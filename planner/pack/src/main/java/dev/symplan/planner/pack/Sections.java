package dev.symplan.planner.pack;

import java.util.Arrays;

/**
 * Time with everything left out that does not matter: a section is a set of buffers that are live
 * together and to which none could be added (a maximal clique of the interval graph). Two buffers
 * overlap in time exactly when they share a section; the most bytes live at one step are the bytes
 * of the largest section.
 */
final class Sections {

  /** More bytes than this in one section, and heights could leave the range of a long. */
  private static final long MAX_LIVE = 1L << 60;

  private final int count;
  private final int[] first;
  private final int[] end;
  private final long maxLive;

  private Sections(int count, int[] first, int[] end, long maxLive) {
    this.count = count;
    this.first = first;
    this.end = end;
    this.maxLive = maxLive;
  }

  static Sections of(PackingProblem problem) {
    int n = problem.count();
    var starts = new int[n];
    var ends = new int[n];
    for (int i = 0; i < n; i++) {
      starts[i] = problem.start(i);
      ends[i] = problem.end(i);
    }
    Arrays.sort(starts);
    Arrays.sort(ends);
    var begins = new int[n];
    int count = 0;
    int ended = 0;
    boolean afterEnd = true;
    for (int start : starts) {
      while (ends[ended] <= start) {
        ended++;
        afterEnd = true;
      }
      if (afterEnd) {
        begins[count++] = start;
        afterEnd = false;
      }
    }
    var lookup = new Lookup(begins, count);
    var first = new int[n];
    var end = new int[n];
    var live = new long[count + 1];
    // The sums of the sizes' upper halves cannot overflow, and show whether the sums of sizes do.
    var upper = new long[count + 1];
    for (int i = 0; i < n; i++) {
      first[i] = lookup.atOrBefore(problem.start(i)) - 1;
      end[i] = lookup.atOrBefore(problem.end(i) - 1);
      long size = problem.paddedSize(i);
      live[first[i]] += size;
      live[end[i]] -= size;
      upper[first[i]] += size >>> 32;
      upper[end[i]] -= size >>> 32;
    }
    long sum = 0;
    long upperSum = 0;
    long maxLive = 0;
    for (int s = 0; s < count; s++) {
      sum += live[s];
      upperSum += upper[s];
      if (upperSum > MAX_LIVE >> 32) {
        throw new IllegalArgumentException("more than 2^60 bytes are live at one step");
      }
      maxLive = Math.max(maxLive, sum);
    }
    return new Sections(count, first, end, maxLive);
  }

  /** How many sections begin at or before a step. */
  private static final class Lookup {
    private final int[] begins;
    private final int count;

    /** By step minus the first step; empty if steps are too sparse for a table. */
    private final int[] table;

    Lookup(int[] begins, int count) {
      this.begins = begins;
      this.count = count;
      long range = count == 0 ? 0 : (long) begins[count - 1] - begins[0] + 1;
      table = new int[range <= 16L * count + 1024 ? (int) range : 0];
      int next = 0;
      for (int t = 0; t < table.length; t++) {
        if (begins[next] - begins[0] == t) {
          next++;
        }
        table[t] = next;
      }
    }

    int atOrBefore(int step) {
      if (table.length > 0) {
        long at = (long) step - begins[0];
        return at >= table.length ? count : table[(int) at];
      }
      int found = Arrays.binarySearch(begins, 0, count, step);
      return found >= 0 ? found + 1 : -found - 1;
    }
  }

  int count() {
    return count;
  }

  /** {@return the first section that the buffer is live in} */
  int first(int buffer) {
    return first[buffer];
  }

  /** {@return the section after the last that the buffer is live in} */
  int end(int buffer) {
    return end[buffer];
  }

  /** {@return the most bytes that are live in one section} */
  long maxLive() {
    return maxLive;
  }
}
