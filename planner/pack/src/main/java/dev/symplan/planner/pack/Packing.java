package dev.symplan.planner.pack;

import com.google.common.primitives.ImmutableLongArray;
import java.util.BitSet;

/** Offsets for the buffers of a {@link PackingProblem}, by their positions in it. */
public final class Packing {
  private final ImmutableLongArray offsets;
  private final BitSet inFirstArena;
  private final long height;
  private final long lowerBound;

  /**
   * @param inFirstArena the buffers that lie in holes of a first arena
   * @param height bytes of the arena that was packed; the first arena's are not counted
   * @param lowerBound a lower bound of the height
   */
  Packing(long[] offsets, BitSet inFirstArena, long height, long lowerBound) {
    this.offsets = ImmutableLongArray.copyOf(offsets);
    this.inFirstArena = inFirstArena;
    this.height = height;
    this.lowerBound = lowerBound;
  }

  /** {@return a packing of buffers that all lie in a first arena} */
  static Packing inFirstArena(ImmutableLongArray offsets) {
    var all = new BitSet();
    all.set(0, offsets.length());
    return new Packing(offsets.toArray(), all, 0, 0);
  }

  /** {@return this or another packing of the same buffers, with what is known of both} */
  public Packing orLower(Packing other) {
    var lower = other.height < height ? other : this;
    return new Packing(
        lower.offsets.toArray(),
        lower.inFirstArena,
        lower.height,
        Math.max(lowerBound, other.lowerBound));
  }

  /** {@return the number of buffers} */
  public int count() {
    return offsets.length();
  }

  /** {@return where the buffer begins, in bytes from the start of the arena that it lies in} */
  public long offset(int buffer) {
    return offsets.get(buffer);
  }

  /** {@return the offsets of all buffers, by position, in bytes} */
  public ImmutableLongArray offsets() {
    return offsets;
  }

  /** {@return whether {@link Packer#packInto} put it into a hole of the first arena} */
  public boolean inFirstArena(int buffer) {
    return inFirstArena.get(buffer);
  }

  /** {@return the bytes that the packed arena needs} */
  public long height() {
    return height;
  }

  /**
   * {@return bytes that no packing can go below: the most that are live at one step, or more where
   * a search has shown it}
   */
  public long lowerBound() {
    return lowerBound;
  }

  /** {@return whether no packing is lower} */
  public boolean isOptimal() {
    return height == lowerBound;
  }
}
