package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows go where the kernels of PyTorch put them, by splits that are different on each rank. */
class VariableAllToAllTest {
  private static final int ROWS = 14;
  private static final int PLACES = 60;
  private static final long UNTOUCHED = -7;

  /** Up to this seed, nobody sends anything, or all send everything to the last. */
  private static final int NOTHING = 1;

  private static String text(int ranks, int parts, String call) {
    return """
    group tp = [%s]
    graph g(x: f32[%s, 3], out: f32[%s, 3], splits: i64[%s], offsets: i64[2, %s]) {
      symm_mem::%s
      return out, offsets
    }
    """
        .formatted(
            String.join(", ", IntStream.range(0, ranks).mapToObj(Integer::toString).toList()),
            ROWS,
            PLACES,
            ranks * parts,
            ranks * parts,
            call);
  }

  private static float element(int rank, long row, long column) {
    return rank * 1000 + row * 10 + column;
  }

  /** {@return the rows of each rank for each part of each rank; no more than there are} */
  private static long[][] splits(int ranks, int parts, int seed) {
    var random = new Random(seed);
    var splits = new long[ranks][ranks * parts];
    for (var own : splits) {
      if (seed <= NOTHING) {
        own[own.length - 1] = seed == NOTHING ? 0 : ROWS;
        continue;
      }
      long left = ROWS;
      for (int i = 0; i < own.length; i++) {
        own[i] = random.nextInt(3) == 0 ? 0 : Math.min(left, random.nextInt(5));
        left -= own[i];
      }
    }
    return splits;
  }

  @ParameterizedTest
  @CsvSource({"2, 1, 0", "3, 1, 0", "4, 1, 0", "2, 3, 0", "2, 3, 1", "3, 2, 4", "4, 2, 3"})
  void putsRowsWhereTheKernelsDo(int ranks, int parts, long align) {
    var call =
        parts == 1 && align == 0
            ? "all_to_all_vdev(x, out, splits, offsets, \"tp\")"
            : "all_to_all_vdev_2d(x, out, splits, offsets, \"tp\"%s)"
                .formatted(align == 0 ? "" : ", " + align);
    var plan = Programs.plan(text(ranks, parts, call), CompileOptions.DEFAULT.withRanks(ranks));
    for (int seed = 0; seed < 8; seed++) {
      var splits = splits(ranks, parts, seed);
      try (var session = Session.open(plan, new HostBackend())) {
        for (int rank = 0; rank < ranks; rank++) {
          fill(session, rank, splits[rank]);
        }
        session.run();
        for (int rank = 0; rank < ranks; rank++) {
          check(session, rank, splits, parts, call.contains("_2d") ? Math.max(1, align) : 0);
        }
      }
    }
  }

  private static void fill(Session session, int rank, long[] splits) {
    for (long row = 0; row < ROWS; row++) {
      for (long column = 0; column < 3; column++) {
        session.input(rank, "x").set(element(rank, row, column), row, column);
      }
    }
    for (long row = 0; row < PLACES; row++) {
      for (long column = 0; column < 3; column++) {
        session.input(rank, "out").set(UNTOUCHED, row, column);
      }
    }
    for (int i = 0; i < splits.length; i++) {
      session.input(rank, "splits").setLong(splits[i], i);
    }
  }

  private static void check(Session session, int rank, long[][] splits, int parts, long align) {
    int ranks = splits.length;
    var out = session.output(rank, 0).orElseThrow();
    var offsets = session.output(rank, 1).orElseThrow();
    var expected = new float[PLACES][3];
    for (var row : expected) {
      Arrays.fill(row, UNTOUCHED);
    }
    long start = 0;
    for (int part = 0; part < parts; part++) {
      long place = start;
      for (int from = 0; from < ranks; from++) {
        long first = 0;
        for (int i = 0; i < rank * parts + part; i++) {
          first += splits[from][i];
        }
        long count = splits[from][rank * parts + part];
        assertThat(offsets.getLong(0, part * ranks + from)).isEqualTo(count);
        assertThat(offsets.getLong(1, part * ranks + from)).isEqualTo(place);
        for (long i = 0; i < count; i++, place++) {
          for (int column = 0; column < 3; column++) {
            expected[(int) place][column] = element(from, first + i, column);
          }
        }
      }
      start = align == 0 ? place : start + Math.max(1, Math.ceilDiv(place - start, align)) * align;
    }
    assertThat(rows(out)).isDeepEqualTo(expected);
  }

  /** The parts of each rank lie apart, and in another order than they are sent in. */
  @ParameterizedTest
  @CsvSource({"2, 1", "2, 3", "3, 2", "4, 2"})
  void bringsRowsBack(int ranks, int parts) {
    int pieces = ranks * parts;
    var text =
        text(ranks, parts, "all_to_all_vdev_2d_offset(x, out, splits, offsets, \"tp\")")
            .replace("splits: i64[%s]".formatted(pieces), "splits: i64[2, %s]".formatted(pieces));
    var plan = Programs.plan(text, CompileOptions.DEFAULT.withRanks(ranks));
    for (int seed = 0; seed < 8; seed++) {
      var random = new Random(seed);
      var splits = splits(ranks, parts, seed);
      var begins = new long[ranks][pieces];
      for (int rank = 0; rank < ranks; rank++) {
        for (int i = 0; i < pieces; i++) {
          begins[rank][i] = random.nextLong(ROWS - splits[rank][i] + 1);
        }
      }
      try (var session = Session.open(plan, new HostBackend())) {
        for (int rank = 0; rank < ranks; rank++) {
          fill(session, rank, new long[0]);
          for (int i = 0; i < pieces; i++) {
            session.input(rank, "splits").setLong(splits[rank][i], 0, i);
            session.input(rank, "splits").setLong(begins[rank][i], 1, i);
          }
        }
        session.run();
        for (int rank = 0; rank < ranks; rank++) {
          checkBack(session, rank, splits, begins, parts);
        }
      }
    }
  }

  private static void checkBack(
      Session session, int rank, long[][] splits, long[][] begins, int parts) {
    int ranks = splits.length;
    var offsets = session.output(rank, 1).orElseThrow();
    var expected = new float[PLACES][3];
    for (var row : expected) {
      Arrays.fill(row, UNTOUCHED);
    }
    long place = 0;
    for (int from = 0; from < ranks; from++) {
      for (int part = 0; part < parts; part++) {
        long count = splits[from][part * ranks + rank];
        assertThat(offsets.getLong(0, from * parts + part)).isEqualTo(count);
        assertThat(offsets.getLong(1, from * parts + part)).isEqualTo(place);
        for (long i = 0; i < count; i++, place++) {
          long row = begins[from][part * ranks + rank] + i;
          for (int column = 0; column < 3; column++) {
            expected[(int) place][column] = element(from, row, column);
          }
        }
      }
    }
    assertThat(rows(session.output(rank, 0).orElseThrow())).isDeepEqualTo(expected);
  }

  private static float[][] rows(HostTensor tensor) {
    var rows = new float[PLACES][3];
    for (int row = 0; row < PLACES; row++) {
      for (int column = 0; column < 3; column++) {
        rows[row][column] = (float) tensor.get(row, column);
      }
    }
    return rows;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "all_to_all_vdev(x, out, offsets, offsets, \"tp\")",
        "all_to_all_vdev(x, out, splits, splits, \"tp\")",
        "all_to_all_vdev(x, offsets, splits, offsets, \"tp\")",
        "all_to_all_vdev_2d(x, out, splits, offsets, \"tp\", 0)",
        "all_to_all_vdev_2d(x, out, splits, offsets, \"tp\", 9223372036854775807)",
        "all_to_all_vdev_2d_offset(x, out, splits, offsets, \"tp\")"
      })
  void refusesWhatDoesNotFit(String call) {
    var text = text(2, 2, call);
    assertThatThrownBy(() -> Programs.plan(text, CompileOptions.DEFAULT.withRanks(2)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("symm_mem::all_to_all_vdev");
  }

  @ParameterizedTest
  @ValueSource(strings = {"-1, 3", "15, 0", "7, 8", "9223372036854775807, 1"})
  void endsWhereSplitsDoNotFitTheInput(String wrong) {
    var given = Arrays.stream(wrong.split(", ")).mapToLong(Long::parseLong).toArray();
    for (int rank = 0; rank < 2; rank++) {
      var splits = new long[][] {{2, 3}, {4, 0}};
      splits[rank] = given;
      assertThatThrownBy(
              () -> run(text(2, 1, "all_to_all_vdev(x, out, splits, offsets, \"tp\")"), splits))
          .isInstanceOf(RunException.class)
          .hasMessageContaining("in_splits are negative, or more than the rows of the input");
    }
  }

  @Test
  void endsWhereTheOutputIsTooSmall() {
    // Parts begin at 0, 32 and 64.
    var call = "all_to_all_vdev_2d(x, out, splits, offsets, \"tp\", 32)";
    run(text(2, 3, call), new long[][] {{1, 1, 0, 1, 1, 0}, {0, 0, 0, 0, 0, 0}});
    assertThatThrownBy(
            () -> run(text(2, 3, call), new long[][] {{0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0}}))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("the ranks send more rows than out has");
  }

  @ParameterizedTest
  @CsvSource({"-1, 0", "2, 13", "1, -1", "1, 9223372036854775807", "15, 0"})
  void endsWhereOffsetsDoNotFitTheInput(long split, long offset) {
    var text =
        text(2, 1, "all_to_all_vdev_2d_offset(x, out, splits, offsets, \"tp\")")
            .replace("splits: i64[2]", "splits: i64[2, 2]");
    assertThatThrownBy(() -> run(text, new long[][] {{3, split, 0, offset}, {0, 0, 99, -1}}))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("in_splits_offsets name rows that the input does not have");
    run(text, new long[][] {{3, 1, 0, 13}, {0, 0, 99, -1}});
  }

  private static void run(String text, long[][] splits) {
    var plan = Programs.plan(text, CompileOptions.DEFAULT.withRanks(2));
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < 2; rank++) {
        fill(session, rank, new long[0]);
        var own = Programs.flat(session.input(rank, "splits"));
        for (int i = 0; i < splits[rank].length; i++) {
          own.setLong(splits[rank][i], i);
        }
      }
      session.run();
    }
  }

  @Test
  void splitsOfOneRankMustBeOneForEach() {
    var text = text(2, 2, "all_to_all_vdev(x, out, splits, offsets, \"tp\")");
    assertThatThrownBy(() -> Programs.plan(text, CompileOptions.DEFAULT.withRanks(2)))
        .hasMessageContaining("in_splits must be i64[2], not i64[4]");
  }
}
