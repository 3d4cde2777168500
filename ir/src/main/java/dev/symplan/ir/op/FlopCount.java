package dev.symplan.ir.op;

import dev.symplan.ir.TensorType;

/**
 * The floating-point operations of an op, a multiply-add counting as two, as {@code
 * torch.utils.flop_counter} counts them.
 */
@FunctionalInterface
public interface FlopCount {

  /**
   * {@return the operations of one call}
   *
   * @param result the type of the first of its results that is a tensor
   */
  double of(OpCall call, TensorType result);
}
