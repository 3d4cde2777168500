package dev.symplan.planner.pack;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** Stand-in until the real packer lands. */
public final class Packer {
  private Packer() {}

  public record Packing(long[] offsets, boolean[] first, long height, long lowerBound) {
    public long offset(int i) {
      return offsets[i];
    }

    public boolean inFirstArena(int i) {
      return first[i];
    }
  }

  public static Packing pack(PackingProblem problem) {
    return packInto(PackingProblem.builder().build(), new long[0], 0, problem);
  }

  public static Packing packInto(
      PackingProblem fixed, long[] fixedOffsets, long arena, PackingProblem free) {
    int n = free.rows().size();
    var order =
        IntStream.range(0, n)
            .boxed()
            .sorted(Comparator.comparingLong((Integer i) -> -free.size(i)))
            .toList();
    var offsets = new long[n];
    var inFirst = new boolean[n];
    var placed = new ArrayList<Integer>();
    long height = 0;
    for (int i : order) {
      var busy = new ArrayList<long[]>();
      for (int j = 0; j < fixedOffsets.length; j++) {
        var r = fixed.rows().get(j);
        if (r[0] < free.end(i) && free.start(i) < r[1]) {
          busy.add(new long[] {fixedOffsets[j], fixedOffsets[j] + fixed.size(j)});
        }
      }
      var busy2 = new ArrayList<long[]>();
      for (int j : placed) {
        if (free.overlap(i, j)) {
          (inFirst[j] ? busy : busy2).add(new long[] {offsets[j], offsets[j] + free.size(j)});
        }
      }
      long at = gap(busy, free.size(i));
      if (at + free.size(i) <= arena) {
        inFirst[i] = true;
      } else {
        at = gap(busy2, free.size(i));
        height = Math.max(height, at + free.size(i));
      }
      offsets[i] = at;
      placed.add(i);
    }
    long bound = Math.max(0, free.bound(fixed.rows(), free.rows()) - arena);
    return new Packing(offsets, inFirst, height, Math.min(bound, height));
  }

  private static long gap(List<long[]> busy, long size) {
    busy.sort(Comparator.comparingLong(b -> b[0]));
    long at = 0;
    for (var b : busy) {
      if (b[0] - at >= size) {
        return at;
      }
      at = Math.max(at, b[1]);
    }
    return at;
  }
}
