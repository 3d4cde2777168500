package dev.symplan.ir;

import dev.symplan.ir.diag.Span;

/**
 * One SSA value of a graph.
 *
 * @param id unique within its graph; inputs have the first ids
 * @param name unique within its graph
 * @param annotated whether the source wrote the type out
 */
public record Value(int id, String name, Type type, Span span, boolean annotated) {

  /** {@return the type of a value that is known to be a tensor} */
  public TensorType tensor() {
    if (type instanceof TensorType tensor) {
      return tensor;
    }
    throw new IllegalStateException(name + " is not a tensor but " + type);
  }

  public boolean isTensor() {
    return type instanceof TensorType;
  }

  public Value withId(int other) {
    return other == id ? this : new Value(other, name, type, span, annotated);
  }

  /** By the id alone: names, types and spans of many values would take long. */
  @Override
  public int hashCode() {
    return id;
  }

  @Override
  public String toString() {
    return name + ": " + type;
  }
}
