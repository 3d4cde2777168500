/** The ops {@code hlo::NAME}: instructions of XLA that have no equivalent in PyTorch. */
@NullMarked
package dev.symplan.ir.hlo.ops;

import org.jspecify.annotations.NullMarked;
