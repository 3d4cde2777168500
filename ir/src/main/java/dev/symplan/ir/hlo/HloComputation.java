package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Span;

/**
 * A function of a module.
 *
 * @param instructions in the order of the text, which is the schedule of a scheduled module
 * @param root the instruction whose value it gives
 * @param span its first line
 */
public record HloComputation(
    String name, ImmutableList<HloInstruction> instructions, HloInstruction root, Span span) {

  /** {@return the parameters, by their numbers} */
  ImmutableList<HloInstruction> parameters() {
    return instructions.stream()
        .filter(instruction -> instruction.opcode().equals("parameter"))
        .sorted((a, b) -> Long.compare(Long.parseLong(a.literal()), Long.parseLong(b.literal())))
        .collect(ImmutableList.toImmutableList());
  }
}
