package dev.symplan.runtime.launch;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;

/** A socket whose two sides are introducing themselves, within a limited time. */
final class Introduction {
  private final Socket socket;
  private final Limited limited;
  private final DataInputStream in;
  private final DataOutputStream out;

  /**
   * @param most how long the other side may take in all
   */
  Introduction(Socket socket, Duration most) throws IOException {
    this.socket = socket;
    this.limited = new Limited(socket, most);
    this.in = new DataInputStream(new BufferedInputStream(limited));
    this.out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
  }

  /** A side that sends single bytes slowly does not get more time. */
  private static final class Limited extends FilterInputStream {
    private final Socket socket;
    private final long end;
    private boolean over;

    Limited(Socket socket, Duration most) throws IOException {
      super(socket.getInputStream());
      this.socket = socket;
      this.end = System.nanoTime() + most.toNanos();
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
      if (!over) {
        long left = (end - System.nanoTime()) / 1_000_000;
        if (left <= 0) {
          throw new SocketTimeoutException("the other side takes too long to say who it is");
        }
        socket.setSoTimeout(Math.toIntExact(left));
      }
      return super.read(bytes, offset, length);
    }
  }

  DataInputStream in() {
    return in;
  }

  DataOutputStream out() {
    return out;
  }

  /**
   * {@return the same connection for frames, after the introduction}
   *
   * @param silence how long the other side may say nothing from now on
   */
  Channel channel(Seal incoming, Seal outgoing, Duration silence) throws IOException {
    limited.over = true;
    socket.setTcpNoDelay(true);
    socket.setSoTimeout(Math.toIntExact(silence.toMillis()));
    return new Channel(socket, in, out, incoming, outgoing);
  }

  /** Closes a socket without a word. */
  static void close(Socket socket) {
    try {
      socket.close();
    } catch (IOException _) {
      // It is of no use any more in any case.
    }
  }
}
