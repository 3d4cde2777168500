package dev.symplan.runtime.cuda;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * An exchange of rows whose splits only the device knows.
 *
 * @param call the op, with {@code %s} for its arguments
 * @param ranks of the group
 * @param parts of each rank, as experts are
 */
record SplitExchange(String call, int ranks, int parts) {
  private static final int ROWS = 64;
  private static final int SPACE = 48;

  /** How many rows go where. */
  enum Splits {
    NONE,
    ALL_TO_ONE,
    ONE_SENDS,
    UNEVEN
  }

  static Stream<String> calls() {
    return Stream.of(
        "all_to_all_vdev(%s)",
        "all_to_all_vdev_2d(%s)", "all_to_all_vdev_2d(%s, 8)", "all_to_all_vdev_2d_offset(%s)");
  }

  /** {@return one with several parts for each rank, if the op has any} */
  static SplitExchange of(String call, int ranks) {
    return new SplitExchange(call, ranks, call.contains("_2d") ? 4 : 1);
  }

  private boolean hasOffsets() {
    return call.contains("_offset");
  }

  Plan plan() {
    int pieces = ranks * parts;
    var text =
        """
        graph version 1
        group tp = [%s]
        graph g(x: bf16[%s, 16], out: bf16[%s, 16], splits: i64[%s%s], offsets: i64[2, %s]) {
          symm_mem::%s
          return out, offsets
        }
        """
            .formatted(
                IntStream.range(0, ranks)
                    .mapToObj(Integer::toString)
                    .collect(Collectors.joining(", ")),
                ROWS,
                ranks * ROWS + SPACE,
                hasOffsets() ? "2, " : "",
                pieces,
                pieces,
                call.formatted("x, out, splits, offsets, \"tp\""));
    return Compiler.forTarget(Target.H200_X8)
        .with(CompileOptions.DEFAULT.withRanks(ranks))
        .compile(GraphParser.parse(new SourceFile("exchange.graph", text)));
  }

  /** Gives all ranks the same inputs whatever the session is. */
  void fill(Session session, Splits kind, long seed) {
    for (int rank = 0; rank < ranks; rank++) {
      for (var name : session.inputNames()) {
        SeededInputs.fill(session.input(rank, name), seed, rank, name);
      }
      var random = new Random(seed * ranks + rank);
      var splits = session.input(rank, "splits");
      long sent = 0;
      for (int i = 0; i < ranks * parts; i++) {
        long rows = Math.min(ROWS - sent, rows(kind, rank, i, random));
        sent += rows;
        if (hasOffsets()) {
          splits.setLong(rows, 0, i);
          splits.setLong(random.nextLong(ROWS - rows + 1), 1, i);
        } else {
          splits.setLong(rows, i);
        }
      }
    }
  }

  private long rows(Splits kind, int rank, int piece, Random random) {
    return switch (kind) {
      case NONE -> 0;
      case ALL_TO_ONE -> piece == ranks * parts - 1 ? ROWS : 0;
      case ONE_SENDS -> rank == ranks - 1 ? random.nextInt(ROWS / parts) : 0;
      case UNEVEN -> random.nextInt(3) == 0 ? 0 : random.nextInt(ROWS / 2);
    };
  }
}
