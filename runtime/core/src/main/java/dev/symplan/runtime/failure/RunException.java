package dev.symplan.runtime.failure;

/** A program failed while it ran, or could not be started; the message names rank, op and line. */
public final class RunException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public RunException(String message) {
    super(message);
  }

  public RunException(String message, Throwable cause) {
    super(message, cause);
  }
}
