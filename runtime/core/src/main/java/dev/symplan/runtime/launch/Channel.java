package dev.symplan.runtime.launch;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;

/** Sealed frames over a socket, between two sides that know each other. */
final class Channel {
  private final Socket socket;
  private final DataInputStream in;
  private final DataOutputStream out;
  private final Seal incoming;
  private final Seal outgoing;

  Channel(Socket socket, DataInputStream in, DataOutputStream out, Seal incoming, Seal outgoing) {
    this.socket = socket;
    this.in = in;
    this.out = out;
    this.incoming = incoming;
    this.outgoing = outgoing;
  }

  boolean isOpen() {
    return !socket.isClosed();
  }

  void write(Frame frame) throws IOException {
    var bytes = frame.toBytes();
    out.writeInt(bytes.length);
    out.write(bytes);
    out.write(outgoing.next(bytes));
    out.flush();
  }

  /**
   * @throws IOException when the connection ends, or something else than the next frame of the
   *     other side comes
   */
  Frame read() throws IOException {
    int length = in.readInt();
    if (length < Frame.MIN_BYTES || length > Frame.MAX_BYTES) {
      throw new IOException("a frame of " + length + " bytes");
    }
    // Takes no more memory than bytes have come.
    var bytes = in.readNBytes(length);
    var code = in.readNBytes(Seal.BYTES);
    if (bytes.length < length || code.length < Seal.BYTES) {
      throw new EOFException("the end of the connection within a frame");
    }
    if (!incoming.isNext(bytes, code)) {
      throw new IOException("a frame that the other side has not sent");
    }
    return Frame.of(bytes);
  }

  /** Says that nothing more is written. */
  void end() throws IOException {
    socket.shutdownOutput();
  }

  /** Closes the socket without a word. */
  void close() {
    Introduction.close(socket);
  }
}
