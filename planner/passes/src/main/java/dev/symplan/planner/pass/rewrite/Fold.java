package dev.symplan.planner.pass.rewrite;

import com.google.common.primitives.ImmutableIntArray;

/** A collective that can do without the copies around it. */
sealed interface Fold permits LayoutFold, PackedFold {

  /** {@return the number of the collective} */
  int collective();

  /** {@return the ops that are left out} */
  ImmutableIntArray copies();

  /** {@return whether another rank's collective moves its slices in the same way} */
  boolean isLike(Fold other);
}
