package dev.symplan.cli;

import dev.symplan.runtime.failure.Failure;

/** What the process exits with. */
final class ExitCode {
  static final int OK = 0;

  /** The user's input is wrong, or a check failed. */
  static final int FAILED = 1;

  /** The command line is wrong. */
  static final int USAGE = 2;

  /** No device of the wanted kind can be used. */
  static final int NO_DEVICE = 3;

  /** The program failed while it ran. */
  static final int RUNTIME = Failure.RUN_FAILED;

  /** An error of Symplan's own. */
  static final int BUG = 70;

  private ExitCode() {}
}
