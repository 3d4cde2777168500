package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Span;
import java.util.HashMap;
import java.util.Map;

/**
 * A function of a module.
 *
 * @param instructions in the order of the text, which is the schedule of a scheduled module
 * @param notable the few of these that say something of the whole: collectives, custom calls, and
 *     what calls computations
 * @param root the instruction whose value it gives
 * @param span its first line
 */
public record HloComputation(
    String name,
    ImmutableList<HloInstruction> instructions,
    ImmutableList<HloInstruction> notable,
    HloInstruction root,
    Span span) {

  /** {@return the parameters, by their numbers} */
  ImmutableList<HloInstruction> parameters() {
    return instructions.stream()
        .filter(instruction -> instruction.opcode().equals("parameter"))
        .sorted((a, b) -> Long.compare(Long.parseLong(a.literal()), Long.parseLong(b.literal())))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the shape of each instruction, by its name} */
  Map<String, HloShape> shapes() {
    var shapes = HashMap.<String, HloShape>newHashMap(instructions.size());
    for (var instruction : instructions) {
      shapes.put(instruction.name(), instruction.shape());
    }
    return shapes;
  }

  /** {@return the last instruction that reads each operand, by the operand's text} */
  Map<String, HloInstruction> lastUsers() {
    var users = HashMap.<String, HloInstruction>newHashMap(instructions.size());
    for (var instruction : instructions) {
      for (var operand : instruction.operands()) {
        users.put(operand, instruction);
      }
    }
    return users;
  }
}
