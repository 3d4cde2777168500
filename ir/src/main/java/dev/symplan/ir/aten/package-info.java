/**
 * The built-in ops: PyTorch's schemas with their shape, stride and alias rules. Each family of ops
 * is a class, so there are more than thirty.
 */
@NullMarked
package dev.symplan.ir.aten;

import org.jspecify.annotations.NullMarked;
