package dev.symplan.planner.pack;

import com.google.common.primitives.ImmutableLongArray;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * Packs the buffers of all ranks into one arena at once. A symmetric buffer has the same offset on
 * all ranks, and a place that suits the local buffers of one rank may be in the way of another's.
 * No time axis holds all buffers, as local buffers of two ranks never meet.
 *
 * <p>Buffers go to the lowest free offset, one after the other. Their order is changed a little at
 * random, again and again, and kept where the arena gets no higher.
 *
 * <p>The same for the same buffers everywhere: {@link Random} is specified to the bit.
 */
final class JointPacking {
  /** Looking at so many pairs of buffers takes 0.1 to 0.2 s. */
  private static final long LOOKS = 20_000_000;

  /** How many buffers change their places in the order at once, at most. */
  private static final int MOVES = 3;

  private static final long NOWHERE = -1;

  /** The symmetric buffers, then the local ones of each rank. */
  private final PackingProblem all;

  private final List<PackingProblem> symmetric;
  private final int[] rankOfLocal;

  /** For each buffer, those that it must not overlap. */
  private final int[][] meets;

  /** Where the placed ones among them begin and end, the lowest first. */
  private final long[] begins;

  private final long[] ends;
  private final Random random = new Random(1);
  private long looks;
  private long[] offsets;
  private long height;

  /**
   * @param common the symmetric buffers, each live as long as on any rank
   * @param own the symmetric buffers, live as on each rank
   * @param local each rank's local buffers
   */
  JointPacking(PackingProblem common, List<PackingProblem> own, List<PackingProblem> local) {
    symmetric = own;
    var buffers = common;
    var ranks = IntStream.builder();
    for (int rank = 0; rank < local.size(); rank++) {
      buffers = buffers.concat(local.get(rank));
      for (int i = 0; i < local.get(rank).count(); i++) {
        ranks.add(rank);
      }
    }
    all = buffers;
    rankOfLocal = ranks.build().toArray();
    meets = new int[all.count()][];
    for (int i = 0; i < meets.length; i++) {
      int item = i;
      meets[i] =
          IntStream.range(0, meets.length)
              .filter(other -> other != item && meet(Math.min(item, other), Math.max(item, other)))
              .toArray();
    }
    begins = new long[all.count()];
    ends = new long[all.count()];
    offsets = new long[all.count()];
  }

  private boolean meet(int low, int high) {
    int locals = all.count() - rankOfLocal.length;
    if (high < locals) {
      return overlap(all, low, all, high);
    }
    int rank = rankOfLocal[high - locals];
    return low < locals
        ? overlap(symmetric.get(rank), low, all, high)
        : rankOfLocal[low - locals] == rank && overlap(all, low, all, high);
  }

  private static boolean overlap(PackingProblem a, int i, PackingProblem b, int j) {
    return a.start(i) < b.end(j) && b.start(j) < a.end(i);
  }

  /** Packs all buffers, to a height that is enough or as low as it can. */
  void solve(long enough) {
    var order =
        IntSort.sorted(all.count(), (a, b) -> Long.compare(all.paddedSize(b), all.paddedSize(a)));
    height = place(order, Long.MAX_VALUE, offsets);
    var trial = new long[all.count()];
    while (height > enough && looks < LOOKS) {
      var changed = order.clone();
      for (int moves = 1 + random.nextInt(MOVES); moves > 0; moves--) {
        move(changed, random.nextInt(changed.length), random.nextInt(changed.length));
      }
      long reached = place(changed, height, trial);
      if (reached <= height) {
        order = changed;
        height = reached;
        var last = offsets;
        offsets = trial;
        trial = last;
      }
    }
  }

  private static void move(int[] order, int from, int to) {
    int moved = order[from];
    if (from < to) {
      System.arraycopy(order, from + 1, order, from, to - from);
    } else {
      System.arraycopy(order, to, order, to + 1, from - to);
    }
    order[to] = moved;
  }

  /** {@return the height with these offsets; one above the limit is not exact} */
  private long place(int[] order, long limit, long[] into) {
    Arrays.fill(into, NOWHERE);
    long top = 0;
    for (int i : order) {
      into[i] = lowest(i, into);
      top = Math.max(top, into[i] + all.paddedSize(i));
      if (top > limit) {
        return top;
      }
    }
    return top;
  }

  private long lowest(int item, long[] placed) {
    int count = 0;
    for (int other : meets[item]) {
      if (placed[other] != NOWHERE) {
        int at = count++;
        for (; at > 0 && begins[at - 1] > placed[other]; at--) {
          begins[at] = begins[at - 1];
          ends[at] = ends[at - 1];
          looks++;
        }
        begins[at] = placed[other];
        ends[at] = placed[other] + all.paddedSize(other);
      }
    }
    looks += meets[item].length + 1;
    long offset = 0;
    for (int k = 0; k < count && begins[k] < offset + all.paddedSize(item); k++) {
      offset = Math.max(offset, Item.alignUp(ends[k], all.alignment(item)));
    }
    return offset;
  }

  /** {@return the bytes of the arena} */
  long height() {
    return height;
  }

  /** {@return the offsets of so many buffers from a position in all} */
  ImmutableLongArray offsets(int from, int count) {
    return ImmutableLongArray.copyOf(Arrays.copyOfRange(offsets, from, from + count));
  }
}
