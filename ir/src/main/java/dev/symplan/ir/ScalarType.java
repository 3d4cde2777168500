package dev.symplan.ir;

/** A plain number that a graph takes or computes, such as a specialised {@code SymInt}. */
public enum ScalarType implements Type {
  INT,
  FLOAT,
  BOOL;

  @Override
  public String toString() {
    return switch (this) {
      case INT -> "int";
      case FLOAT -> "float";
      case BOOL -> "bool";
    };
  }
}
