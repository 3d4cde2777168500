package dev.symplan.codegen.expr;

/** A target, which is known only when a call runs, is not one of the classes. */
public final class NoSuchClassException extends RuntimeException {
  private static final long serialVersionUID = 1;

  NoSuchClassException(long target, long classes) {
    super("target %s is out of range for %s classes".formatted(target, classes));
  }
}
