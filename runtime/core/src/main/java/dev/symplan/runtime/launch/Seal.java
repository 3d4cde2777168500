package dev.symplan.runtime.launch;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The code at the end of each frame of one direction of a connection. Only the two sides can make
 * it, and it differs for each frame, so nobody else can change, repeat or drop a frame.
 *
 * <p>By one thread at a time.
 */
final class Seal {
  static final int BYTES = 32;

  private static final String ALGORITHM = "HmacSHA256";

  private final Mac mac;
  private long frames;

  /**
   * @param key of this direction of this connection
   */
  Seal(byte[] key) {
    try {
      this.mac = Mac.getInstance(ALGORITHM);
      this.mac.init(new SecretKeySpec(key, ALGORITHM));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has " + ALGORITHM, e);
    }
  }

  /** {@return the code of the next frame} */
  byte[] next(byte[] frame) {
    mac.update(ByteBuffer.allocate(Long.BYTES).putLong(frames++).flip());
    return mac.doFinal(frame);
  }

  /** {@return whether the code is that of the next frame} */
  boolean isNext(byte[] frame, byte[] code) {
    return MessageDigest.isEqual(next(frame), code);
  }
}
