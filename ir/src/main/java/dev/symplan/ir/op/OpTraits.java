package dev.symplan.ir.op;

/**
 * A set of traits. One bit answers for each, as passes ask for each op.
 *
 * @param bits by {@link OpTrait#ordinal}
 */
public record OpTraits(int bits) {
  public static final OpTraits NONE = new OpTraits(0);

  /** {@return these traits, and some more} */
  public OpTraits with(OpTrait... more) {
    int all = bits;
    for (var trait : more) {
      all |= bit(trait);
    }
    return new OpTraits(all);
  }

  public boolean contains(OpTrait trait) {
    return (bits & bit(trait)) != 0;
  }

  private static int bit(OpTrait trait) {
    return 1 << trait.ordinal();
  }
}
