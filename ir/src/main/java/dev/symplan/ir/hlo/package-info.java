/**
 * Import of XLA's HLO modules from the text that {@code --xla_dump_to} writes.
 *
 * <p>{@link dev.symplan.ir.hlo.HloReader} reads a text into an {@link
 * dev.symplan.ir.hlo.HloModule}, whatever is in it. {@link dev.symplan.ir.hlo.HloImporter} makes a
 * program of the entry computation: instructions that PyTorch has an op for become that op,
 * collectives become functional collectives, and others become an op {@code hlo::NAME} that can be
 * planned but not run. A tensor's strides are those of its layout in XLA.
 */
@NullMarked
package dev.symplan.ir.hlo;

import org.jspecify.annotations.NullMarked;
