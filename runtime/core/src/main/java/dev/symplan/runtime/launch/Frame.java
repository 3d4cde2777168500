package dev.symplan.runtime.launch;

import dev.symplan.ir.diag.Units;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * A message over a connection of the store, in either direction: the length of the rest, the kind,
 * a number, a key and data. Their meanings depend on the kind. All numbers are big-endian.
 */
final class Frame {

  /** Longer ones are refused: nobody fills the memory of another by a wrong length. */
  static final int MAX_BYTES = 16 << 20;

  private static final int MAX_KEY = 1 << 10;

  /** Ordinals are part of the protocol. */
  enum Kind {
    /** To the store: keep data under a key. */
    SET,
    /** To the store: send the data of a key once it is there, with this number. */
    GET,
    /** From the store: the data that was asked for by this number. */
    VALUE,
    /** Both ways, in silence: the other side is alive. */
    PING,
    /** To the store: this rank has failed; the number is an exit code, the data a text. */
    FAIL,
    /** From the store: the rank of this number has failed; the key is an exit code. */
    FAILED,
    /** To the store: this rank leaves in good order. */
    BYE,
    /** From the store: the rank of this number has left in good order. */
    LEFT
  }

  private final Kind kind;
  private final int number;
  private final String key;
  private final byte[] data;

  private Frame(Kind kind, int number, String key, byte[] data) {
    this.kind = kind;
    this.number = number;
    this.key = key;
    this.data = data;
  }

  /**
   * @throws IllegalArgumentException when it is too long to be sent
   */
  static Frame of(Kind kind, int number, String key, byte[] data) {
    if (data.length > MAX_BYTES - MAX_KEY - 16 || key.length() > MAX_KEY / 4) {
      throw new IllegalArgumentException(
          "%s bytes for '%s' are more than the store takes".formatted(data.length, key));
    }
    return new Frame(kind, number, key, data);
  }

  static Frame of(Kind kind, int number) {
    return new Frame(kind, number, "", new byte[0]);
  }

  Kind kind() {
    return kind;
  }

  int number() {
    return number;
  }

  String key() {
    return key;
  }

  byte[] data() {
    return data;
  }

  String text() {
    return new String(data, StandardCharsets.UTF_8);
  }

  void write(DataOutputStream out) throws IOException {
    var name = key.getBytes(StandardCharsets.UTF_8);
    out.writeInt(1 + 4 + 4 + name.length + data.length);
    out.writeByte(kind.ordinal());
    out.writeInt(number);
    out.writeInt(name.length);
    out.write(name);
    out.write(data);
    out.flush();
  }

  /**
   * @throws IOException when the connection ends, or other bytes than a frame come
   */
  static Frame read(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 9 || length > MAX_BYTES) {
      throw new IOException("a frame of " + length + " bytes");
    }
    int kind = in.readUnsignedByte();
    int number = in.readInt();
    int keyLength = in.readInt();
    if (kind >= Kind.values().length
        || keyLength < 0
        || keyLength > MAX_KEY
        || keyLength > length - 9) {
      throw new IOException(
          "no frame: kind %s, key of %s".formatted(kind, Units.count(keyLength, "byte")));
    }
    var key = new byte[keyLength];
    in.readFully(key);
    var data = new byte[length - 9 - keyLength];
    in.readFully(data);
    return new Frame(Kind.values()[kind], number, new String(key, StandardCharsets.UTF_8), data);
  }
}
