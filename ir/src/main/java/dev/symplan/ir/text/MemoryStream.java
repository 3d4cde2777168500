package dev.symplan.ir.text;

import org.antlr.v4.runtime.IntStream;

/** A stream that is in memory as a whole, so that it can go anywhere. */
abstract class MemoryStream implements IntStream {
  /** The index of what is next. */
  int position;

  /** {@return the index that stands for the end} */
  abstract int end();

  /** {@return the index of what is {@code offset} from here: 1 is next, -1 was last} */
  final int at(int offset) {
    return offset > 0 ? position + offset - 1 : position + offset;
  }

  @Override
  public final void consume() {
    if (position == end()) {
      throw new IllegalStateException("cannot consume EOF");
    }
    position++;
  }

  @Override
  public final int mark() {
    return -1;
  }

  @Override
  public final void release(int marker) {}

  @Override
  public final int index() {
    return position;
  }

  @Override
  public final void seek(int index) {
    position = Math.min(index, end());
  }
}
