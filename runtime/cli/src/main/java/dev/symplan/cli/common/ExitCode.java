package dev.symplan.cli.common;

import dev.symplan.runtime.failure.Failure;

/** The exit codes of the process. */
public final class ExitCode {
  public static final int OK = 0;

  /** The user's input is wrong, or a check failed. */
  public static final int FAILED = 1;

  /** The command line is wrong. */
  public static final int USAGE = 2;

  /** No device of the wanted kind can be used. */
  public static final int NO_DEVICE = 3;

  /** The program failed while it ran. */
  public static final int RUNTIME = Failure.RUN_FAILED;

  /** An error of Symplan's own. */
  public static final int BUG = 70;

  private ExitCode() {}
}
