package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;

/** An argument or result of a local op, its tensors resolved to addresses. */
public sealed interface Operand {

  /** A tensor. */
  record Tensor(TensorRef ref) implements Operand {}

  /**
   * What a fused instruction passes from part to part, element by element.
   *
   * @param index its number in the instruction
   * @param type as if it were in memory
   */
  record Passed(int index, TensorType type) implements Operand {
    /** {@return for example {@code %0:f32[8, 64]}} */
    @Override
    public String toString() {
      return "%" + index + ":" + type;
    }
  }

  /** A list that holds tensors. */
  record Many(ImmutableList<Operand> items) implements Operand {}

  /** Anything else. */
  record Constant(Arg value) implements Operand {}
}
