package dev.symplan.ir.op;

/** Arguments that do not fit an op or each other; whoever builds the graph adds the place. */
public final class OpTypeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String hint;

  public OpTypeException(String message) {
    this(message, "");
  }

  public OpTypeException(String message, String hint) {
    super(message, null, false, false);
    this.hint = hint;
  }

  /** {@return what to do about it; may be empty} */
  public String hint() {
    return hint;
  }
}
