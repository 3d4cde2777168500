/** Tensors in host memory, and their files. */
@NullMarked
package dev.symplan.runtime.tensor;

import org.jspecify.annotations.NullMarked;
