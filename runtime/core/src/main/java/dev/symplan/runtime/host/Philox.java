package dev.symplan.runtime.host;

/**
 * Random numbers by position: Philox-4x32 with 10 rounds (Salmon et al. 2011), and the numbers that
 * Triton's {@code tl.rand} and {@code tl.randn} make of them.
 */
final class Philox {
  private static final int MULTIPLIER_A = 0xD2511F53;
  private static final int MULTIPLIER_B = 0xCD9E8D57;
  private static final int WEYL_A = 0x9E3779B9;
  private static final int WEYL_B = 0xBB67AE85;
  private static final int ROUNDS = 10;

  /** The largest float below 2^-31, which keeps products below 1. */
  private static final float UNIFORM_SCALE = 4.6566127342e-10f;

  private static final float SMALLEST_UNIFORM = 1.0e-7f;

  private final long seed;

  Philox(long seed) {
    this.seed = seed;
  }

  private int[] block(long position) {
    int c0 = (int) position;
    int c1 = (int) (position >>> Integer.SIZE);
    int c2 = 0;
    int c3 = 0;
    int k0 = (int) seed;
    int k1 = (int) (seed >>> Integer.SIZE);
    for (int round = 0; round < ROUNDS; round++) {
      long a = Integer.toUnsignedLong(MULTIPLIER_A) * Integer.toUnsignedLong(c0);
      long b = Integer.toUnsignedLong(MULTIPLIER_B) * Integer.toUnsignedLong(c2);
      c0 = (int) (b >>> Integer.SIZE) ^ c1 ^ k0;
      c2 = (int) (a >>> Integer.SIZE) ^ c3 ^ k1;
      c1 = (int) b;
      c3 = (int) a;
      k0 += WEYL_A;
      k1 += WEYL_B;
    }
    return new int[] {c0, c1, c2, c3};
  }

  /** {@return a number in [0, 1)} */
  float uniform(long position) {
    return uniform(block(position)[0]);
  }

  private static float uniform(int bits) {
    return (bits < 0 ? -bits - 1 : bits) * UNIFORM_SCALE;
  }

  /** {@return a normally distributed number, by Box and Muller's transform} */
  double normal(long position) {
    var bits = block(position);
    double radius = Math.sqrt(-2 * Math.log(Math.max(SMALLEST_UNIFORM, uniform(bits[0]))));
    return radius * Math.cos(2 * Math.PI * uniform(bits[1]));
  }

  /** {@return 64 random bits} */
  long bits(long position) {
    var bits = block(position);
    return Integer.toUnsignedLong(bits[0]) | (long) bits[1] << Integer.SIZE;
  }

  /** {@return an integer in [low, high)} */
  long integer(long position, long low, long high) {
    return low + Long.remainderUnsigned(bits(position), Math.max(1, high - low));
  }
}
