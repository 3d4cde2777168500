package dev.symplan.runtime.failure;

/**
 * The reason why the processes cannot continue together.
 *
 * @param rank the rank that failed or is gone
 * @param code the exit code of the processes
 * @param text for people; it names the rank
 */
public record Failure(int rank, int code, String text) {

  /** The exit code of a process whose run failed, or that has lost another process. */
  public static final int RUN_FAILED = 4;
}
