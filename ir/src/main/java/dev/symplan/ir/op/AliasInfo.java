package dev.symplan.ir.op;

import com.google.common.collect.ImmutableSet;

/**
 * An alias annotation of a schema: {@code (a)}, {@code (a!)}, {@code (a|b)}, {@code (a! -> b|c)},
 * {@code (*)}.
 *
 * @param before the alias sets on entry; {@code *} for any
 * @param write whether the op writes the value
 * @param after the alias sets on return; the same as {@code before} unless an arrow says otherwise
 * @param outermost whether it speaks of the list, as in {@code t[](a!)}, not of its elements, as in
 *     {@code Tensor(a!)[]}
 */
public record AliasInfo(
    ImmutableSet<String> before, boolean write, ImmutableSet<String> after, boolean outermost) {

  /** The set of everything that may be a view of anything. */
  public static final String ANYTHING = "*";

  /** No annotation: fresh, or only read. */
  public static final AliasInfo NONE =
      new AliasInfo(ImmutableSet.of(), false, ImmutableSet.of(), false);

  /** {@return an annotation of elements with one set, which stays} */
  public static AliasInfo of(String set, boolean write) {
    return new AliasInfo(ImmutableSet.of(set), write, ImmutableSet.of(set), false);
  }

  /** {@return the annotation of an argument that is written, and may be anywhere afterwards} */
  public static AliasInfo unknown(String set) {
    return new AliasInfo(ImmutableSet.of(set), true, ImmutableSet.of(ANYTHING), false);
  }

  /** {@return whether the value may be a view of anything on return} */
  public boolean isAnything() {
    return after.contains(ANYTHING);
  }

  public boolean isPresent() {
    return !before.isEmpty();
  }

  /** {@return as written, empty for {@link #NONE}} */
  @Override
  public String toString() {
    if (!isPresent()) {
      return "";
    }
    var text = "(" + String.join("|", before) + (write ? "!" : "");
    return after.equals(before) ? text + ")" : text + " -> " + String.join("|", after) + ")";
  }
}
