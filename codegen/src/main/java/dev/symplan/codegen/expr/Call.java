package dev.symplan.codegen.expr;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.List;
import java.util.Optional;

/** The properties of a call that a {@link Binding} needs. */
public interface Call {

  /** {@return whether the op has a parameter} */
  boolean hasParam(String param);

  /** {@return the type of an argument that is a tensor} */
  Optional<TensorType> tensor(String param);

  /**
   * {@return an argument that is not a tensor}
   *
   * @throws RuntimeException when it is a list of tensors
   */
  Arg constant(String param);

  /** {@return the element types of all operands and results that are tensors} */
  List<DType> dtypes();

  /** {@return the element type of the first result} */
  DType result();

  /** {@return how many elements a row has; 1 if the op is by elements} */
  long rowElements();
}
