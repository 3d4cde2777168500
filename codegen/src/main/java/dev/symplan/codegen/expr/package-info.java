/**
 * The meaning of ops, once for all backends.
 *
 * <p>For each op, {@code expressions.txt} gives its results as {@link Expr}s of its parameters: of
 * one element for elementwise ops; of one element or one row for ops that fold, scan or normalize
 * rows. {@link Binding} puts a call's constants into them, and decides everything that depends on
 * constants and element types, such as branches and the type of computation. The rest refers only
 * to tensors.
 *
 * <p>A backend gives each {@link Primitive} its meaning: {@link Blocks} computes them in f64 or in
 * 64-bit integers on the host, {@code codegen.cuda} prints them in f32 (f64 for f64). A few
 * primitives have no CUDA form; ops that need them are refused on GPUs.
 *
 * <p>To add an op, add a line to {@code expressions.txt}.
 */
@NullMarked
package dev.symplan.codegen.expr;

import org.jspecify.annotations.NullMarked;
