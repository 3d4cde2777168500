/**
 * Import of XLA's HLO modules from the text that {@code --xla_dump_to} writes.
 *
 * <p>{@link dev.symplan.ir.hlo.HloReader} reads any text into an {@link
 * dev.symplan.ir.hlo.HloModule}. {@link dev.symplan.ir.hlo.HloImporter} makes a program of the
 * entry computation. Instructions with an equivalent in PyTorch become that op, collectives become
 * functional collectives, and other instructions become an op {@code hlo::NAME}, which can be
 * planned but not run. A tensor's strides are those of its layout in XLA.
 *
 * <p>The package has more than thirty classes because each family of instructions is a class. They
 * share the reader's records and the emitter of ops, which are visible only here.
 */
@NullMarked
package dev.symplan.ir.hlo;

import org.jspecify.annotations.NullMarked;
