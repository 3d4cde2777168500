package dev.symplan.codegen;

import com.google.common.hash.Hashing;
import java.nio.charset.StandardCharsets;

/** The seeds of ops that draw from a generator: the same on all backends. */
public final class RandomSeeds {
  private static final long STEP = 0x9E3779B97F4A7C15L;
  private static final long FIRST = 0xBF58476D1CE4E5B9L;
  private static final long SECOND = 0x94D049BB133111EBL;

  private RandomSeeds() {}

  /** {@return the seed of a generator's name, or of the result of an op without a generator} */
  public static long of(String name) {
    return Hashing.sipHash24().hashString(name, StandardCharsets.UTF_8).asLong();
  }

  /**
   * {@return the seed of a state up to an element, from that before it; at first, it is 0} The
   * function is that of SplitMix64 (Steele et al. 2014).
   */
  public static long mixed(long seed, long element) {
    long bits = seed + STEP ^ element;
    bits = (bits ^ bits >>> 30) * FIRST;
    bits = (bits ^ bits >>> 27) * SECOND;
    return bits ^ bits >>> 31;
  }

  /** {@return {@link #mixed} as a function of CUDA C++} */
  public static String mixedInCuda() {
    return """
    __device__ __forceinline__ unsigned long long mixed(unsigned long long seed, unsigned long long element) {
      unsigned long long bits = seed + %sULL ^ element;
      bits = (bits ^ bits >> 30) * %sULL;
      bits = (bits ^ bits >> 27) * %sULL;
      return bits ^ bits >> 31;
    }
    """
        .formatted(hex(STEP), hex(FIRST), hex(SECOND));
  }

  private static String hex(long bits) {
    return "0x" + Long.toHexString(bits);
  }
}
