package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;

/** An argument of a local op, its tensors resolved to places. */
public sealed interface Operand {

  /** A tensor. */
  record Tensor(TensorRef ref) implements Operand {}

  /** A list that holds tensors. */
  record Many(ImmutableList<Operand> items) implements Operand {}

  /** Anything else. */
  record Constant(Arg value) implements Operand {}
}
