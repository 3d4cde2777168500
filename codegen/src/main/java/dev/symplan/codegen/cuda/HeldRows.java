package dev.symplan.codegen.cuda;

import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;

/**
 * The code of a kernel whose blocks reduce some rows of a tensor into memory of their own, and then
 * take these rows through other ops.
 *
 * <p>{@code first} is the number of the first row that a block has at once, {@code at} that of a
 * vector of 16 bytes among its own.
 */
final class HeldRows {
  /** The C++ expression of a thread's row in a block's memory. */
  static final String ROW = "(held + (row - first) * ROW)";

  /** Blocks may be as large as those of other kernels that meet peers. */
  private static final int MOST_THREADS = CollectiveAddresses.THREADS;

  /** The rest of a block's memory is for what its threads tell each other. */
  private static final long MOST_BYTES = 32 << 10;

  private static final String EACH =
      """
        for (long long first = (long long)blockIdx.x * TOGETHER; first < ROWS; first += (long long)gridDim.x * TOGETHER) {
      """;

  private static final String SLICES =
      """
        for (long long turn = blockIdx.x; turn < PER; turn += gridDim.x) {
        for (int slice = 0; slice < RANKS; slice++) {
          const long long first = (slice * (long long)PER + turn) * TOGETHER;
      """;

  private static final String IN_TURN =
      """
        for (int next = 0; next < RANKS; next++) {
        const int slice = ((int)args.self + next) % RANKS;
        for (long long turn = blockIdx.x; turn < PER; turn += gridDim.x) {
          const long long first = (slice * (long long)PER + turn) * TOGETHER;
      """;

  private final RowKernel kernel;
  private final RowKernel.Rows rows;
  private final long rowVectors;

  /**
   * @param kernel the work on rows
   * @param dtype of the elements that are held
   * @param memory the arguments of the kernel, which this adds to
   */
  HeldRows(RowKernel kernel, DType dtype, MemoryArguments memory) {
    this.kernel = kernel;
    this.rowVectors = kernel.elements() * dtype.bytes() / Alignment.VECTOR;
    this.rows = kernel.rows(memory, MOST_THREADS, MOST_BYTES / (rowVectors * Alignment.VECTOR));
  }

  /** {@return whether a block has memory for the rows that it takes at once} */
  boolean fit() {
    return rows.threads().together() * rowVectors * Alignment.VECTOR <= MOST_BYTES;
  }

  /** {@return the threads of a block} */
  int threads() {
    return rows.threads().block();
  }

  /** {@return how many blocks have rows if each takes as many as it does at once} */
  long blocks() {
    return Math.ceilDiv(kernel.rows(), rows.threads().together());
  }

  /** {@return the vectors that each thread holds at most} */
  int vectorsPerThread() {
    return Math.toIntExact(Math.ceilDiv(rows.threads().together() * rowVectors, threads()));
  }

  /** {@return the constants and types of the code} */
  String definitions() {
    return BarrierCode.define("ROWS", kernel.rows())
        + BarrierCode.define("TOGETHER", rows.threads().together())
        + BarrierCode.define("ROW", rowVectors)
        + rows.threads().vectors().type();
  }

  /** {@return statements that go over all rows of a block} */
  static String each(String statements) {
    return EACH + statements + "  }\n";
  }

  /**
   * {@return statements that take all rows of a block through the ops}
   *
   * @param hold statements that store them to {@code held}
   * @param meanwhile statements that begin with those that come next
   */
  String loop(String hold, String meanwhile) {
    return memory() + each(through(hold, meanwhile));
  }

  /**
   * {@return the same for rows that lie in a slice of each rank, of which the block takes those
   * that have the same numbers in all; {@code PER} times {@code TOGETHER} rows are a slice}
   */
  String loopOverSlices(String hold) {
    return memory() + SLICES + through(hold, "") + "  }\n  }\n";
  }

  /** {@return the same, one slice after the other, beginning with that of the rank} */
  String loopOverSlicesInTurn(String hold) {
    return memory() + IN_TURN + through(hold, "") + "  }\n  }\n";
  }

  private String memory() {
    return """
      __shared__ uint4 held[TOGETHER * ROW];
      [[maybe_unused]] const unsigned lane = %s;
    """
        .formatted(rows.threads().lane());
  }

  private String through(String hold, String meanwhile) {
    return hold
        + "    __syncthreads();\n"
        + meanwhile
        + rows.statements()
        + "    __syncthreads();\n";
  }

  /** {@return how many rows a block takes at once} */
  long together() {
    return rows.threads().together();
  }

  /** {@return how many vectors they are} */
  long unit() {
    return together() * rowVectors;
  }

  /** {@return the number of all rows} */
  long rows() {
    return kernel.rows();
  }
}
