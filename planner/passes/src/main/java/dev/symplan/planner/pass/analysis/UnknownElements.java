package dev.symplan.planner.pass.analysis;

/** The elements of a tensor are not known, or not exactly. */
final class UnknownElements extends RuntimeException {
  private static final long serialVersionUID = 1;

  UnknownElements() {
    super("unknown", null, false, false);
  }
}
