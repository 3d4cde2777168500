/** The built-in ops: PyTorch's schemas with their shape, stride and alias rules. */
@NullMarked
package dev.symplan.ir.aten;

import org.jspecify.annotations.NullMarked;
