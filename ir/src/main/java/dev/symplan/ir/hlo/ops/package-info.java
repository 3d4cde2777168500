/** The ops {@code hlo::NAME}: instructions of XLA that no op of PyTorch stands for. */
@NullMarked
package dev.symplan.ir.hlo.ops;

import org.jspecify.annotations.NullMarked;
