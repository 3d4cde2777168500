/**
 * Ops that are more than one expression of their operands: norms and their gradients, losses,
 * optimizers, ops on lists, and arithmetic of complex numbers.
 *
 * <p>{@link Composites} expands a call into {@link Step}s, in order. A step consists of expressions
 * of rows or elements, and of the view that it has of each tensor of the call. The host computes a
 * step with {@code RowsKernel}, in f64. The CUDA backend makes one launch of each step.
 *
 * <p>The expressions are in {@code expressions.txt} of {@code codegen.expr}, in lines that begin
 * with {@code composite} or {@code complex}.
 */
@NullMarked
package dev.symplan.codegen.composite;

import org.jspecify.annotations.NullMarked;
