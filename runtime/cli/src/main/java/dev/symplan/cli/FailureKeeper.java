package dev.symplan.cli;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Optional;

/** Keeps why something could not be written. A PrintStream only says that it was not. */
final class FailureKeeper extends FilterOutputStream {
  private Optional<IOException> failure = Optional.empty();

  FailureKeeper(OutputStream to) {
    super(to);
  }

  /** {@return the first failure} */
  Optional<IOException> failure() {
    return failure;
  }

  @Override
  public void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    try {
      out.write(bytes, offset, length);
    } catch (IOException e) {
      failure = failure.or(() -> Optional.of(e));
      throw e;
    }
  }
}
