package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableMap;

/**
 * The contents of an HLO text.
 *
 * @param attributes those of the first line, as {@code is_scheduled=true, num_partitions=4}
 * @param computations by name, in the order of the text
 * @param entry the computation that runs
 * @param usesHost whether any array is in the host's memory, or an instruction moves one there
 * @param hasOpaque whether the elements of any array are not those of its tensor
 */
public record HloModule(
    String name,
    HloAttributes attributes,
    ImmutableMap<String, HloComputation> computations,
    HloComputation entry,
    boolean usesHost,
    boolean hasOpaque,
    SourceTables sources) {

  /** {@return whether the order of the text is the one in which XLA runs the instructions} */
  public boolean isScheduled() {
    return attributes.flag("is_scheduled");
  }
}
