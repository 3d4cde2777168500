package dev.symplan.ir.op;

import java.util.List;

/** Infers the results of an op from its arguments: their types, and which of them are views. */
@FunctionalInterface
public interface InferRule {
  /**
   * {@return one entry for each tensor that the op gives, a {@code Tensor[]} result spread out}
   *
   * @throws OpTypeException when the arguments do not fit each other
   */
  List<OpResult> infer(OpCall call);

  /** For ops with one result. */
  static InferRule single(java.util.function.Function<OpCall, OpResult> rule) {
    return call -> List.of(rule.apply(call));
  }
}
