package dev.symplan.planner.calibrate;

import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Variant;

/**
 * A measured time, in microseconds.
 *
 * @param gpu what it was measured on; empty where the file does not say
 * @param date when; empty where the file does not say
 */
record Point(Subject subject, double micros, String gpu, String date) {

  /** What was measured. */
  sealed interface Subject {

    /**
     * A collective by itself, from the start of its kernel to the end, launches amortised.
     *
     * @param bytes of one rank's operands
     */
    record Collective(Kind kind, Variant variant, long bytes, int ranks) implements Subject {}

    /** A copy of so many bytes within one GPU's memory. */
    record Copy(long bytes) implements Subject {}

    /** A 16-bit matrix product of so many floating-point operations. */
    record Gemm(double flops) implements Subject {}

    /** One barrier of a group. */
    record Barrier(int ranks) implements Subject {}

    /** What one more kernel adds to a captured graph. */
    record Launch() implements Subject {}

    /** From the start of copies by the copy engines to their first byte. */
    record CopyEngineStart() implements Subject {}

    /** Compute and a transfer side by side, with the times of each alone. */
    record Together(boolean copyEngine, double computeMicros, double transferMicros)
        implements Subject {}
  }
}
