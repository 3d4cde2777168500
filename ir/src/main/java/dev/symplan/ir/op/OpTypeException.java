package dev.symplan.ir.op;

/**
 * Arguments that do not fit an op or each other. The builder of the graph adds the source position.
 */
public final class OpTypeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String hint;
  private final String param;

  public OpTypeException(String message) {
    this(message, "");
  }

  public OpTypeException(String message, String hint) {
    this(message, hint, "");
  }

  OpTypeException(String message, String hint, String param) {
    super(message, null, false, false);
    this.hint = hint;
    this.param = param;
  }

  /** {@return the remedy; may be empty} */
  public String hint() {
    return hint;
  }

  /** {@return the parameter whose argument is wrong; empty if it is not a single one} */
  public String param() {
    return param;
  }
}
