package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import java.util.Optional;

/** Instructions that start others, as those that they start. */
final class Starts {
  private Starts() {}

  /** {@return the instruction that one such as {@code all-reduce-start} starts} */
  static HloInstruction started(HloInstruction start, HloShape results) {
    return new HloInstruction(
        start.name(),
        results,
        Fusions.withoutPhase(start.opcode()),
        start.operands(),
        start.literal(),
        start.attributes(),
        start.span());
  }

  /** {@return the root of the computation that an instruction starts, by its name and line} */
  static HloInstruction root(HloInstruction start, HloComputation callee) {
    var root = callee.root();
    return new HloInstruction(
        start.name(),
        root.shape(),
        root.opcode(),
        root.operands(),
        "",
        root.attributes(),
        start.span());
  }

  /** {@return the number of the parameter that the root of a computation reads as an operand} */
  static int parameter(HloComputation callee, String operand) {
    return callee.parameters().stream()
        .filter(parameter -> parameter.name().equals(operand))
        .findFirst()
        .map(parameter -> Integer.parseInt(parameter.literal()))
        .orElse(Integer.MAX_VALUE);
  }

  /**
   * {@return the results among what a start gives} They come after its operands, and before the
   * numbers with which a {@code collective-permute} keeps track.
   */
  static Optional<HloShape> results(HloInstruction start) {
    return start.shape() instanceof HloShape.Tuple(ImmutableList<HloShape> parts)
            && parts.size() > 1
        ? Optional.of(parts.get(1))
        : Optional.empty();
  }
}
