package dev.symplan.codegen.composite;

import dev.symplan.codegen.expr.Blocks;
import dev.symplan.ir.DType;

/** The place of the elements that a {@link Step} reads or writes. */
public sealed interface Source {

  /**
   * An argument of the call.
   *
   * @param item the position in a list; 0 if the argument is one tensor
   */
  record Argument(String param, int item) implements Source {}

  /** A result of the call. */
  record Result(int index) implements Source {}

  /**
   * The parts of complex elements.
   *
   * @param part 0 for the real parts, 1 for the imaginary ones
   */
  record Part(Source of, int part) implements Source {}

  /** No memory: each element is its index along the only dimension of more than one element. */
  record Index() implements Source {}

  /**
   * One element of an argument for each target class.
   *
   * @param of classes are along one of its dimensions
   * @param target the operand of the step that has the classes
   * @param stride how far apart classes are
   * @param classes how many there are; a target must be one of them, or ignored
   * @param ignored the target for which any element may be given
   */
  record Picked(Argument of, String target, long stride, long classes, long ignored)
      implements Source {
    /**
     * {@return the index of a target}
     *
     * @throws dev.symplan.codegen.expr.NoSuchClassException when it is not one of the classes
     */
    public long index(long value) {
      return value == ignored ? 0 : Blocks.targetClass(value, classes);
    }
  }

  /**
   * Memory of the call's own, in f64, which passes values from one step to the next. The first step
   * that has it sees all of it.
   *
   * @param start the position of the first element that is seen
   */
  record Temporary(int number, long start) implements Source {
    /** The type of its elements. */
    public static final DType DTYPE = DType.F64;
  }
}
