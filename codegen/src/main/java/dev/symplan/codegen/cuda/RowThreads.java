package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.RowNode.Fold;
import java.util.ArrayList;
import java.util.List;

/**
 * The division of rows among the threads of a block.
 *
 * @param perRow how many share a row
 * @param together how many rows a block takes at once
 * @param across whether neighbouring threads take neighbouring rows, rather than elements
 * @param vectors how many neighbouring elements a thread takes at once
 */
record RowThreads(int perRow, int together, boolean across, Vectors vectors) {
  private static final int MAX_THREADS = 1024;
  private static final int WARP = 32;

  /** Threads of a block that takes several rows. */
  private static final int BLOCK = 128;

  /** So many rows keep all multiprocessors busy, even where few threads share each. */
  private static final long MANY = 1024;

  /** For rows that one thread goes through by itself. */
  static final RowThreads ALONE = new RowThreads(1, 1, false, Vectors.NONE);

  /**
   * @param inOrder whether elements must be taken one after the other
   * @param neighbours whether rows are neighbours in memory, and a row's elements are not
   * @param vectors the widest that the elements lie for
   */
  static RowThreads of(
      long rows, long elements, boolean inOrder, boolean neighbours, Vectors vectors) {
    boolean across = neighbours && rows >= WARP && elements > 1;
    var own = inOrder || across ? Vectors.NONE : vectors;
    int perRow = inOrder || elements <= 1 ? 1 : perRow(rows, elements, across, own.width());
    int together = 1;
    while (across ? together < WARP : perRow * together < (rows > together ? BLOCK : WARP)) {
      together *= 2;
    }
    return new RowThreads(perRow, together, across, own);
  }

  /**
   * {@return blocks that take more rows at once, as long as there are rows for all blocks that meet
   * peers}
   *
   * @param most threads of a block
   * @param mostRows that a block can take at once
   */
  RowThreads wider(long rows, int most, long mostRows) {
    int wide = together;
    while (!across
        && rows > (long) wide * DeviceProgram.MAX_BLOCKS
        && 2 * perRow * wide <= most
        && 2L * wide <= mostRows) {
      wide *= 2;
    }
    return new RowThreads(perRow, wide, across, vectors);
  }

  private static int perRow(long rows, long elements, boolean across, int width) {
    if (!across && elements > 8 * WARP) {
      // Fewer threads have more loads under way each, and less to bring together.
      long each = width > 1 && rows >= MANY ? 16 : 8;
      return (int) Math.min(MAX_THREADS, Math.ceilDiv(elements, each * WARP) * WARP);
    }
    long wanted = across ? Math.ceilDiv(elements, 8) : Math.min(elements / width, WARP);
    int power = 1;
    while (power < wanted && power < (across ? MAX_THREADS / WARP : WARP)) {
      power *= 2;
    }
    return power;
  }

  /** {@return the most elements that a thread takes of a row} */
  long perThread(long elements) {
    return Math.ceilDiv(elements, (long) perRow * vectors.width()) * vectors.width();
  }

  /** {@return the threads of a block} */
  int block() {
    return perRow * together;
  }

  /** {@return as C++, a thread's number among those of its row} */
  String lane() {
    return across ? "threadIdx.x / 32" : "threadIdx.x % " + perRow;
  }

  /** {@return as C++, the number of a thread's row among those of the block} */
  String row() {
    return across ? "threadIdx.x % 32" : "threadIdx.x / " + perRow;
  }

  /**
   * {@return statements that bring together what the threads of a row kept of their elements: each
   * has {@code a0}, {@code a1}, and then all have the same}
   *
   * @param number of the fold; it has shared memory of its own
   */
  List<String> unite(int number, Fold fold) {
    var lines = new ArrayList<String>();
    if (across) {
      share(
          lines,
          number,
          fold,
          perRow * WARP,
          "threadIdx.x",
          "threadIdx.x % 32",
          "w * 32 + threadIdx.x % 32",
          perRow);
      return lines;
    }
    lines.add("for (int d = %s; d > 0; d /= 2) {".formatted(Math.min(perRow, WARP) / 2));
    for (int i = 0; i < fold.types().size(); i++) {
      lines.add(
          "  %s b%s = __shfl_xor_sync(0xffffffffu, a%s, d);".formatted(fold.types().get(i), i, i));
    }
    lines.add("  " + fold.combine());
    lines.add("}");
    if (perRow > WARP) {
      int warps = perRow / WARP;
      // Each row of a block has slots of its own.
      var own = together == 1 ? "" : "threadIdx.x / %s * %s + ".formatted(perRow, warps);
      share(lines, number, fold, together * warps, "threadIdx.x / 32", own + "0", own + "w", warps);
    }
    return lines;
  }

  /**
   * Lets threads store what they kept for other threads, which take it in order.
   *
   * @param slots how many leave theirs
   * @param slot where a thread leaves its own
   * @param first where the first is that a thread takes
   * @param next where the others are, by {@code w}
   * @param parts how many a thread takes
   */
  private void share(
      List<String> lines,
      int number,
      Fold fold,
      int slots,
      String slot,
      String first,
      String next,
      int parts) {
    int count = fold.types().size();
    for (int i = 0; i < count; i++) {
      lines.add("__shared__ %s shared%s_%s[%s];".formatted(fold.types().get(i), number, i, slots));
    }
    if (!across) {
      lines.add("if (lane % 32 == 0) {");
    }
    for (int i = 0; i < count; i++) {
      lines.add("%sshared%s_%s[%s] = a%s;".formatted(across ? "" : "  ", number, i, slot, i));
    }
    if (!across) {
      lines.add("}");
    }
    lines.add("__syncthreads();");
    for (int i = 0; i < count; i++) {
      lines.add("a%s = shared%s_%s[%s];".formatted(i, number, i, first));
    }
    lines.add("for (int w = 1; w < %s; w++) {".formatted(parts));
    for (int i = 0; i < count; i++) {
      lines.add("  %s b%s = shared%s_%s[%s];".formatted(fold.types().get(i), i, number, i, next));
    }
    lines.add("  " + fold.combine());
    lines.add("}");
    lines.add("__syncthreads();");
  }
}
