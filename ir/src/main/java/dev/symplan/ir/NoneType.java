package dev.symplan.ir;

/** A result that does not exist: {@code None}, or one that nothing reads and nothing describes. */
public enum NoneType implements Type {
  NONE;

  @Override
  public String toString() {
    return "None";
  }
}
