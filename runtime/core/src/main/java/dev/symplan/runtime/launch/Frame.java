package dev.symplan.runtime.launch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * A message over a connection of the store, either way: the kind, a number, a key and data, whose
 * meanings depend on the kind. All numbers are big-endian.
 */
final class Frame {

  /** Longer ones are refused: nobody fills the memory of another by a wrong length. */
  static final int MAX_BYTES = 16 << 20;

  /** The kind, the number and the length of the key. */
  static final int MIN_BYTES = 1 + 2 * Integer.BYTES;

  private static final int MAX_KEY = 1 << 10;

  /** Ordinals are part of the protocol. */
  enum Kind {
    /** To the store: keep data under a key until it was sent this often; 0: for good. */
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

  byte[] toBytes() {
    var name = key.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(MIN_BYTES + name.length + data.length)
        .put((byte) kind.ordinal())
        .putInt(number)
        .putInt(name.length)
        .put(name)
        .put(data)
        .array();
  }

  /**
   * @throws IOException when the bytes are not a frame
   */
  static Frame of(byte[] bytes) throws IOException {
    if (bytes.length < MIN_BYTES) {
      throw new IOException("a frame of %s bytes".formatted(bytes.length));
    }
    var buffer = ByteBuffer.wrap(bytes);
    int kind = Byte.toUnsignedInt(buffer.get());
    int number = buffer.getInt();
    int keyLength = buffer.getInt();
    if (kind >= Kind.values().length
        || keyLength < 0
        || keyLength > MAX_KEY
        || keyLength > buffer.remaining()) {
      throw new IOException("no frame: kind %s, a key of %s bytes".formatted(kind, keyLength));
    }
    var key = new byte[keyLength];
    buffer.get(key);
    var data = new byte[buffer.remaining()];
    buffer.get(data);
    return new Frame(Kind.values()[kind], number, new String(key, StandardCharsets.UTF_8), data);
  }
}
