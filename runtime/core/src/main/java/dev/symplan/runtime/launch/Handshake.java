package dev.symplan.runtime.launch;

import com.google.common.hash.HashCode;
import com.google.common.hash.Hashing;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The first message of each side, before any frame, so that neither side accepts a stranger.
 *
 * @param version of the protocol
 * @param job a digest of what makes the run this one
 */
record Handshake(int version, HashCode job, int rank, int size) {
  static final int VERSION = 1;

  /** The answer to a handshake. */
  enum Answer {
    WELCOME,
    /** Another try may do: what is in the way may be the end of an earlier session. */
    LATER,
    NEVER
  }

  private static final byte[] MAGIC = "SYMPLAN\n".getBytes(StandardCharsets.US_ASCII);
  private static final int DIGEST = 32;
  private static final int MAX_TEXT = 1 << 10;

  static Handshake of(String job, int rank, int size) {
    var digest =
        Hashing.sha256().newHasher().putUnencodedChars(job).putChar('\0').putInt(size).hash();
    return new Handshake(VERSION, digest, rank, size);
  }

  void write(DataOutputStream out) throws IOException {
    out.write(MAGIC);
    out.writeInt(version);
    out.write(job.asBytes());
    out.writeInt(rank);
    out.writeInt(size);
    out.flush();
  }

  /**
   * @throws IOException when it is something else
   */
  static Handshake read(DataInputStream in) throws IOException {
    magic(in);
    int version = in.readInt();
    var digest = new byte[DIGEST];
    in.readFully(digest);
    return new Handshake(version, HashCode.fromBytes(digest), in.readInt(), in.readInt());
  }

  private static void magic(DataInputStream in) throws IOException {
    var magic = new byte[MAGIC.length];
    in.readFully(magic);
    if (!Arrays.equals(magic, MAGIC)) {
      throw new IOException("the program that listens there is not Symplan");
    }
  }

  static void answer(DataOutputStream out, Answer answer, String reason) throws IOException {
    out.write(MAGIC);
    out.writeByte(answer.ordinal());
    out.writeUTF(reason);
    out.flush();
  }

  /** The store's answer to a handshake. */
  record Reply(Answer answer, String reason) {
    static Reply read(DataInputStream in) throws IOException {
      magic(in);
      int answer = in.readUnsignedByte();
      if (answer >= Answer.values().length) {
        throw new IOException("an answer " + answer);
      }
      var reason = in.readUTF();
      return new Reply(
          Answer.values()[answer], reason.substring(0, Math.min(MAX_TEXT, reason.length())));
    }
  }
}
