package dev.symplan.runtime.failure;

/**
 * Why the processes cannot go on together.
 *
 * @param rank the rank that failed or is gone
 * @param code what the processes should exit with
 * @param text for people; it names the rank
 */
public record Failure(int rank, int code, String text) {

  /** What a process exits with whose run failed, or that has lost another process. */
  public static final int RUN_FAILED = 4;
}
