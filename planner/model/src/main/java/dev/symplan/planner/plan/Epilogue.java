package dev.symplan.planner.plan;

import dev.symplan.ir.TensorType;
import dev.symplan.planner.machine.Alignment;

/**
 * Whether the step after a collective runs in the collective's own kernel. Its ops go by rows of
 * what the collective reduces: a rank takes each row through them as soon as it has reduced it,
 * before the collective's end barrier; or, where each rank reduces some of the rows, as soon as the
 * ranks have met at that barrier.
 *
 * <p>A row is rounded to the element type between the collective and the ops, as if it had been in
 * memory, so the results are those of two kernels, bit for bit.
 *
 * @param stored whether the kernel writes what it reduces to memory, too, because other steps read
 *     it
 * @param savedMicros the predicted saving, in µs; 0 if there is none
 */
public record Epilogue(Reason reason, boolean stored, double savedMicros) {

  /** The longest row that a kernel holds while ops go over it, in bytes. */
  private static final long MAX_ROW_BYTES = 32 << 10;

  /**
   * The most bytes that peers store and the kernel then reads again, with the blocks that meet. Not
   * measured.
   */
  public static final long MAX_STORED_BYTES = 4 << 20;

  /** Why the step after a collective runs in its kernel, or not. */
  public enum Reason {
    /** It does. */
    FUSED,
    /** The caller does not want it. */
    OFF,
    /** The collective's variant is not a kernel by whose rows others could go. */
    VARIANT,
    /** The collective runs beside compute, which gains more. */
    BESIDE_COMPUTE,
    /** The step does not go by rows of what the collective reduces. */
    ROWS,
    /** A kernel of its own has more blocks, which counts more than a launch. */
    LARGE
  }

  public Epilogue {
    if (!stored && reason != Reason.FUSED) {
      throw new IllegalArgumentException("what no kernel passes on must be stored");
    }
    if (!(savedMicros >= 0)) {
      throw new IllegalArgumentException("an epilogue that saves " + savedMicros + " µs");
    }
  }

  /** {@return none, for a reason} */
  public static Epilogue none(Reason reason) {
    return new Epilogue(reason, true, 0);
  }

  /**
   * {@return the number of rows of a tensor}
   *
   * @param leading the dimensions that count them, if it has more
   */
  public static long rows(TensorType type, int leading) {
    long rows = 1;
    for (int dim = 0; dim < Math.min(leading, type.rank() - 1); dim++) {
      rows *= type.size(dim);
    }
    return rows;
  }

  public boolean isFused() {
    return reason == Reason.FUSED;
  }

  /**
   * {@return whether a kernel can hold rows of a tensor}
   *
   * @param rows the leading dimensions that count them
   */
  public static boolean holds(TensorType type, int rows) {
    long row = type.dtype().bytes();
    for (int dim = rows; dim < type.rank(); dim++) {
      row *= type.size(dim);
    }
    return type.isContiguous()
        && type.dtype().isFloat()
        && type.dtype().bytes() >= 2
        && row > 0
        && row % Alignment.VECTOR == 0
        && row <= MAX_ROW_BYTES;
  }
}
