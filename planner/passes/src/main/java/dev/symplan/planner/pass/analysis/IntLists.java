package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Parallel;
import java.util.Arrays;

/** Short lists of numbers, one for each of many owners, in one array. */
public final class IntLists {
  private final int[] start;
  private final int[] items;

  private IntLists(int[] start, int[] items) {
    this.start = start;
    this.items = items;
  }

  public int owners() {
    return start.length - 1;
  }

  public int size(int owner) {
    return start[owner + 1] - start[owner];
  }

  public int get(int owner, int index) {
    return items[start[owner] + index];
  }

  /** {@return the same pairs, by their items} */
  public IntLists inverse(int owners) {
    var starts = new int[owners + 1];
    for (int item : items) {
      starts[item + 1]++;
    }
    for (int item = 0; item < owners; item++) {
      starts[item + 1] += starts[item];
    }
    var next = starts.clone();
    var inverse = new int[items.length];
    for (int owner = 0; owner < owners(); owner++) {
      for (int i = start[owner]; i < start[owner + 1]; i++) {
        inverse[next[items[i]]++] = owner;
      }
    }
    return new IntLists(starts, inverse);
  }

  /** Adds the pairs that one of many items has. */
  @FunctionalInterface
  public interface Finder {
    void find(int item, Builder pairs);
  }

  /** Takes pairs in any order; an owner's items keep theirs. */
  public static final class Builder {
    private int[] pairs = new int[64];
    private int count;

    /** {@return the pairs that each of {@code count} items has, in the order of these} */
    public static Builder of(int count, Finder finder) {
      var parts =
          Parallel.parts(
              count,
              (from, to) -> {
                var found = new Builder();
                for (int i = from; i < to; i++) {
                  finder.find(i, found);
                }
                return found;
              });
      var all = parts.getFirst();
      parts.subList(1, parts.size()).forEach(all::addAll);
      return all;
    }

    private void addAll(Builder others) {
      reserve(others.count);
      System.arraycopy(others.pairs, 0, pairs, count, others.count);
      count += others.count;
    }

    private void reserve(int more) {
      if (count + more > pairs.length) {
        pairs = Arrays.copyOf(pairs, Math.max(count + more, 2 * pairs.length));
      }
    }

    public void add(int owner, int item) {
      reserve(2);
      pairs[count++] = owner;
      pairs[count++] = item;
    }

    public IntLists build(int owners) {
      var start = new int[owners + 1];
      for (int i = 0; i < count; i += 2) {
        start[pairs[i] + 1]++;
      }
      for (int owner = 0; owner < owners; owner++) {
        start[owner + 1] += start[owner];
      }
      var next = start.clone();
      var items = new int[count / 2];
      for (int i = 0; i < count; i += 2) {
        items[next[pairs[i]]++] = pairs[i + 1];
      }
      return new IntLists(start, items);
    }
  }
}
