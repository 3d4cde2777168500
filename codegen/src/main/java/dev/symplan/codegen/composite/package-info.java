/**
 * Ops that are more than one expression of their operands: norms and their gradients, losses,
 * optimizers, and ops on lists.
 *
 * <p>{@link Composites} expands a call into {@link Step}s, in order. A step is expressions of rows
 * or elements, and says how each tensor of the call is seen. The host computes a step with {@code
 * RowsKernel}, in f64; the CUDA backend makes one launch of it.
 *
 * <p>The expressions stand in {@code expressions.txt} of {@code codegen.expr}, in lines that begin
 * with {@code composite}.
 */
@NullMarked
package dev.symplan.codegen.composite;

import org.jspecify.annotations.NullMarked;
