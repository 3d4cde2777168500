package dev.symplan.runtime.cuda;

import java.util.HexFormat;

/** The form in which another process opens memory, or a multicast object. */
sealed interface Shareable {

  /** A file descriptor, for processes of the same host. */
  record Descriptor(int number) implements Shareable {}

  /**
   * A handle that is valid on all hosts of an NVLink fabric.
   *
   * @param hex the driver's bytes
   */
  record Fabric(String hex) implements Shareable {
    /** {@code sizeof(CUmemFabricHandle)}. */
    static final int BYTES = 64;

    public Fabric {
      if (HexFormat.of().parseHex(hex).length != BYTES) {
        throw new IllegalArgumentException("a fabric handle of %s digits".formatted(hex.length()));
      }
    }

    static Fabric of(byte[] bytes) {
      return new Fabric(HexFormat.of().formatHex(bytes));
    }

    byte[] toBytes() {
      return HexFormat.of().parseHex(hex);
    }
  }
}
