package dev.symplan.codegen.model;

import dev.symplan.ir.testkit.Golden;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * Epilogues of rows that peers store: blocks of one number meet, while others still read and store.
 * A block must take the rows that those of its number stored, and may write over them. Where ranks
 * push slices to each other, it may write over rows that it has reduced, or got reduced.
 */
class SlicesModelTest {
  private static final String MODEL =
      """
      /* An all_reduce in place by slices, and ops that write over its rows.
       * Two ranks of two blocks. A slice has a row for each block; x(r, s, b) is such a row of
       * slice s in the memory of rank r. */

      #define RANKS 2
      #define BLOCKS 2
      #define ROUNDS 2
      #define x(r, s, b) rows[((r) * RANKS + (s)) * BLOCKS + (b)]
      #define of(r, b) ((r) * BLOCKS + (b))
      #define GIVEN (3 * round + 1)
      #define REDUCED (3 * round + 2)
      #define DONE (3 * round + 3)

      byte rows[8];
      byte met[4];
      byte launched[2];
      byte ended[2];

      inline meet(r, b) {
        met[of(r, b)]++;
        $MEET
      }

      proctype block(byte r, b) {
        byte round;
        do
        :: round < ROUNDS ->
          launched[r] > round;
          meet(r, b);
          assert(x(0, r, b) == GIVEN);
          assert(x(1, r, b) == GIVEN);
          x(0, r, b) = REDUCED;
          x(1, r, b) = REDUCED;
          meet(r, b);
          assert(x(r, 0, $ROW) == REDUCED);
          x(r, 0, $ROW) = DONE;
          assert(x(r, 1, $ROW) == REDUCED);
          x(r, 1, $ROW) = DONE;
          ended[r]++;
          round++
        :: else -> break
        od
      }

      proctype rank(byte r) {
        byte round;
        do
        :: round < ROUNDS ->
          d_step {
            x(r, 0, 0) = GIVEN; x(r, 0, 1) = GIVEN; x(r, 1, 0) = GIVEN; x(r, 1, 1) = GIVEN
          };
          launched[r]++;
          ended[r] == BLOCKS * (round + 1);
          assert(x(r, 0, 0) == DONE && x(r, 0, 1) == DONE && x(r, 1, 0) == DONE && x(r, 1, 1) == DONE);
          round++
        :: else -> break
        od
      }

      init {
        atomic {
          run rank(0); run rank(1);
          run block(0, 0); run block(0, 1); run block(1, 0); run block(1, 1)
        }
      }
      """;

  private static final String PUSHES =
      """
      /* An all_reduce in place by slices that ranks push, and ops that write over its rows.
       * Two ranks of two blocks. A slice has a row for each block; x(r, s, b) is such a row of
       * slice s in the memory of rank r. Each slot of a workspace holds such a row. */

      #define RANKS 2
      #define BLOCKS 2
      #define ROUNDS 3
      #define x(r, s, b) rows[((r) * RANKS + (s)) * BLOCKS + (b)]
      #define GIVE 0
      #define REDUCE 1
      #define of(k, h, r, b) ((((k) * 2 + (h)) * RANKS + (r)) * BLOCKS + (b))
      #define GIVEN (2 * round + 1)
      #define DONE (2 * round + 2)

      byte rows[8];
      byte slots[16];
      byte launched[2];
      byte ended[2];

      inline send(kind, part, to, at) {
        assert(slots[of(kind, part, to, at)] == 0);
        slots[of(kind, part, to, at)] = 1;
      }

      inline take(kind, part, to, at) {
        slots[of(kind, part, to, at)] == 1;
        slots[of(kind, part, to, at)] = 0;
      }

      proctype block(byte r, b) {
        byte round;
        byte half;
        do
        :: round < ROUNDS ->
          launched[r] > round;
          half = round % 2;
          assert(x(r, 1 - r, b) == GIVEN);
          send(GIVE, half, 1 - r, b);
          take(GIVE, half, r, b);
          assert(x(r, r, b) == GIVEN);
          send(REDUCE, half, 1 - r, b);
          x(r, r, $ROW) = DONE;
          $TAKE;
          x(r, 1 - r, b) = DONE;
          ended[r]++;
          round++
        :: else -> break
        od
      }

      proctype rank(byte r) {
        byte round;
        do
        :: round < ROUNDS ->
          d_step {
            x(r, 0, 0) = GIVEN; x(r, 0, 1) = GIVEN; x(r, 1, 0) = GIVEN; x(r, 1, 1) = GIVEN
          };
          launched[r]++;
          ended[r] == BLOCKS * (round + 1);
          assert(x(r, 0, 0) == DONE && x(r, 0, 1) == DONE && x(r, 1, 0) == DONE && x(r, 1, 1) == DONE);
          round++
        :: else -> break
        od
      }

      init {
        atomic {
          run rank(0); run rank(1);
          run block(0, 0); run block(0, 1); run block(1, 0); run block(1, 1)
        }
      }
      """;

  private static final String WAIT =
      "met[of(0, b)] >= met[of(r, b)] && met[of(1, b)] >= met[of(r, b)]";

  private static String model(String row, String meet) {
    return MODEL.replace("$ROW", row).replace("$MEET", meet);
  }

  @Test
  void blocksTakeTheRowsOfTheirNumber() {
    var model = model("b", WAIT);
    Golden.check("models/slices-epilogue.pml", model);
    Spin.assumePresent();
    Spin.assertSafe(Map.of("epilogue", model));
  }

  private static final String TAKE = "take(REDUCE, half, r, b)";

  private static String pushes(String row, String take) {
    return PUSHES.replace("$ROW", row).replace("$TAKE", take);
  }

  @Test
  void blocksTakeTheRowsThatTheyReduce() {
    var model = pushes("b", TAKE);
    Golden.check("models/pushed-slices-epilogue.pml", model);
    Spin.assumePresent();
    Spin.assertSafe(Map.of("pushed epilogue", model));
  }

  @Test
  void otherRowsMayNotBeReducedYet() {
    Spin.assumePresent();
    Spin.assertUnsafe(
        Map.of("another row", pushes("1 - b", TAKE), "nobody waits", pushes("b", "skip")),
        "assertion violated.*");
  }

  @Test
  void otherRowsMayNotBeThereYet() {
    Spin.assumePresent();
    Spin.assertUnsafe(
        Map.of(
            "another row", model("1 - b", WAIT),
            "nobody waits", model("b", "skip")),
        "assertion violated.*");
  }
}
