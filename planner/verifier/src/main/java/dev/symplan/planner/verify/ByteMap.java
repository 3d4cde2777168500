package dev.symplan.planner.verify;

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The contents of each byte of a space, as segments that do not overlap. A byte in no segment was
 * never written.
 */
final class ByteMap {
  private static final int[] NOBODY = {};

  /** Bytes of the same history. */
  static final class Segment {
    private long end;
    private final int storage;
    private final int writer;
    private int[] readers;
    private int owner;

    private Segment(long end, int storage, int writer, int[] readers, int owner) {
      this.end = end;
      this.storage = storage;
      this.writer = writer;
      this.readers = readers;
      this.owner = owner;
    }

    /** {@return the storage that was written here last} */
    int storage() {
      return storage;
    }

    /** {@return the step that wrote it; -1 for the caller} */
    int writer() {
      return writer;
    }

    /** {@return the unfinished collectives that read it} */
    int[] readers() {
      return readers;
    }

    /** {@return the unfinished collective that writes it, or -1} */
    int owner() {
      return owner;
    }
  }

  private final TreeMap<Long, Segment> segments = new TreeMap<>();

  /**
   * Calls {@code action} for each segment with bytes in a range, in order.
   *
   * @return the first byte of the range that was never written; {@code end} if none exists
   */
  long visit(long begin, long end, Consumer<? super Segment> action) {
    long next = begin;
    long gap = end;
    Map.@Nullable Entry<Long, Segment> entry = segments.floorEntry(begin);
    if (entry == null || entry.getValue().end <= begin) {
      entry = segments.higherEntry(begin);
    }
    while (entry != null && entry.getKey() < end) {
      if (entry.getKey() > next) {
        gap = Math.min(gap, next);
      }
      next = entry.getValue().end;
      action.accept(entry.getValue());
      entry = segments.higherEntry(entry.getKey());
    }
    return next < end ? Math.min(gap, next) : gap;
  }

  /** Makes a range one segment of a storage, which nothing else uses. */
  void write(long begin, long end, int storage, int step) {
    split(begin);
    split(end);
    segments.subMap(begin, end).clear();
    segments.put(begin, new Segment(end, storage, step, NOBODY, -1));
  }

  /** Notes that an unfinished collective reads, or writes, a range. */
  void lock(long begin, long end, int collective, boolean write) {
    split(begin);
    split(end);
    for (var segment : segments.subMap(begin, end).values()) {
      if (write) {
        segment.owner = collective;
      } else {
        segment.readers = Arrays.copyOf(segment.readers, segment.readers.length + 1);
        segment.readers[segment.readers.length - 1] = collective;
      }
    }
  }

  /** Takes back what {@link #lock} noted for a collective. */
  void unlock(long begin, long end, int collective) {
    visit(
        begin,
        end,
        segment -> {
          segment.readers = Arrays.stream(segment.readers).filter(k -> k != collective).toArray();
          if (segment.owner == collective) {
            segment.owner = -1;
          }
        });
  }

  private void split(long at) {
    Map.@Nullable Entry<Long, Segment> entry = segments.lowerEntry(at);
    if (entry != null && entry.getValue().end > at) {
      var left = entry.getValue();
      segments.put(at, new Segment(left.end, left.storage, left.writer, left.readers, left.owner));
      left.end = at;
    }
  }
}
