package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import java.util.stream.Stream;

/** An argument or result of a local op, its tensors resolved to addresses. */
public sealed interface Operand {

  /** {@return the tensors in memory that it stands for} */
  default Stream<TensorRef> tensors() {
    return switch (this) {
      case Tensor(var ref) -> Stream.of(ref);
      case Many(var items) -> items.stream().flatMap(Operand::tensors);
      case Passed _, Constant _ -> Stream.empty();
    };
  }

  /** A tensor. */
  record Tensor(TensorRef ref) implements Operand {}

  /**
   * A value that a fused instruction passes from part to part, element by element.
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
