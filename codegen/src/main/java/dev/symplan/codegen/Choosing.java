package dev.symplan.codegen;

/**
 * How weights are added up where one of them is chosen at random: in parts, each from its first
 * weight on, and then the parts. Backends that do so choose the same.
 */
public final class Choosing {
  /** The number of parts; the last ones may be empty. */
  public static final int PARTS = 256;

  private Choosing() {}

  /** {@return the number of weights of a part} */
  public static long part(long weights) {
    return Math.ceilDiv(weights, PARTS);
  }
}
