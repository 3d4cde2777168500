package dev.symplan.codegen.expr;

/** A target, which is known only when a call runs, is not one of the classes. */
public final class NoSuchClassException extends RuntimeException {
  private static final long serialVersionUID = 1;

  NoSuchClassException(long target, long classes) {
    super("target %d is out of range for %d classes".formatted(target, classes));
  }
}
