package dev.symplan.codegen.composite;

import dev.symplan.ir.DType;

/** Where the elements that a {@link Step} reads or writes are. */
public sealed interface Source {

  /**
   * An argument of the call.
   *
   * @param item the position in a list; 0 where the argument is one tensor
   */
  record Argument(String param, int item) implements Source {}

  /** A result of the call. */
  record Result(int index) implements Source {}

  /** No memory: each element is its index along the only dimension of more than one element. */
  record Index() implements Source {}

  /** Memory of the call's own, in f64, which passes values from one step to the next. */
  record Temporary(int number) implements Source {
    /** The type of its elements. */
    public static final DType DTYPE = DType.F64;
  }
}
