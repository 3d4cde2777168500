package dev.symplan.planner.pack;

import com.google.common.collect.ImmutableList;
import java.util.Arrays;
import java.util.List;

/**
 * Buffers that need offsets in one arena: two that live at the same step must not overlap.
 *
 * <p>Buffers are known by their position. Immutable; a million of them take 24 MB.
 */
public final class PackingProblem {

  private final int[] starts;
  private final int[] ends;
  private final long[] sizes;
  private final long[] alignments;

  private PackingProblem(int[] starts, int[] ends, long[] sizes, long[] alignments) {
    this.starts = starts;
    this.ends = ends;
    this.sizes = sizes;
    this.alignments = alignments;
  }

  /** {@return the problem of packing these buffers; the first is buffer 0} */
  public static PackingProblem of(List<Item> buffers) {
    var builder = builder();
    buffers.forEach(builder::add);
    return builder.build();
  }

  /** {@return a builder for problems of many buffers} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return the number of buffers} */
  public int count() {
    return starts.length;
  }

  /** {@return a buffer, by its position} */
  public Item item(int i) {
    return new Item(starts[i], ends[i], sizes[i], alignments[i]);
  }

  /** {@return all buffers, by position} */
  public ImmutableList<Item> items() {
    var buffers = ImmutableList.<Item>builderWithExpectedSize(count());
    for (int i = 0; i < count(); i++) {
      buffers.add(item(i));
    }
    return buffers.build();
  }

  /** {@return the most bytes that are live at one step, alignment included: no arena is smaller} */
  public long lowerBound() {
    return Sections.of(this).maxLive();
  }

  int start(int i) {
    return starts[i];
  }

  int end(int i) {
    return ends[i];
  }

  long paddedSize(int i) {
    return Item.alignUp(sizes[i], alignments[i]);
  }

  long alignment(int i) {
    return alignments[i];
  }

  /**
   * {@return the same buffers, each live from the first step at which it is live in any of the
   * problems to the last}
   *
   * @throws IllegalArgumentException where the problems differ in more than the steps
   */
  static PackingProblem union(List<PackingProblem> problems) {
    var first = problems.getFirst();
    var starts = first.starts.clone();
    var ends = first.ends.clone();
    for (var other : problems) {
      if (!Arrays.equals(other.sizes, first.sizes)
          || !Arrays.equals(other.alignments, first.alignments)) {
        throw new IllegalArgumentException("the problems have different buffers");
      }
      for (int i = 0; i < starts.length; i++) {
        starts[i] = Math.min(starts[i], other.starts[i]);
        ends[i] = Math.max(ends[i], other.ends[i]);
      }
    }
    return new PackingProblem(starts, ends, first.sizes, first.alignments);
  }

  /** {@return the buffers of both, the other's last} */
  PackingProblem concat(PackingProblem other) {
    int n = count();
    int m = other.count();
    var both =
        new PackingProblem(
            Arrays.copyOf(starts, n + m),
            Arrays.copyOf(ends, n + m),
            Arrays.copyOf(sizes, n + m),
            Arrays.copyOf(alignments, n + m));
    System.arraycopy(other.starts, 0, both.starts, n, m);
    System.arraycopy(other.ends, 0, both.ends, n, m);
    System.arraycopy(other.sizes, 0, both.sizes, n, m);
    System.arraycopy(other.alignments, 0, both.alignments, n, m);
    return both;
  }

  /** Collects buffers; the first added is buffer 0. */
  public static final class Builder {
    private int[] starts = new int[16];
    private int[] ends = new int[16];
    private long[] sizes = new long[16];
    private long[] alignments = new long[16];
    private int count;

    private Builder() {}

    /** Adds a buffer after the others. */
    public Builder add(Item buffer) {
      if (count == starts.length) {
        int capacity = count + (count >> 1);
        starts = Arrays.copyOf(starts, capacity);
        ends = Arrays.copyOf(ends, capacity);
        sizes = Arrays.copyOf(sizes, capacity);
        alignments = Arrays.copyOf(alignments, capacity);
      }
      starts[count] = buffer.start();
      ends[count] = buffer.end();
      sizes[count] = buffer.size();
      alignments[count] = buffer.alignment();
      count++;
      return this;
    }

    /** Adds a buffer that lives in {@code [start, end)}; see {@link Item}. */
    public Builder add(int start, int end, long size, long alignment) {
      return add(new Item(start, end, size, alignment));
    }

    /** {@return the problem of packing all buffers added so far} */
    public PackingProblem build() {
      return new PackingProblem(
          Arrays.copyOf(starts, count),
          Arrays.copyOf(ends, count),
          Arrays.copyOf(sizes, count),
          Arrays.copyOf(alignments, count));
    }
  }
}
