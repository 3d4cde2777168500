package dev.symplan.codegen.model;

import dev.symplan.ir.testkit.Golden;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The barriers themselves, met three times in a row without anything that would reset them: nobody
 * leaves before all have come, and all leave.
 */
class BarrierModelTest {

  /** How a rank lets the others know, and waits for them. */
  private enum Barrier {
    /** As the host's: a lock, how many are missing, and a generation. */
    GENERATION(
        """
        byte missing = N, generation;
        """,
        """
        inline meet(me) {
          d_step {
            mine = generation;
            missing--;
            if
            :: missing == 0 -> missing = N; generation++
            :: else
            fi
          }
          generation != mine
        }
        """),
    /**
     * As PyTorch's kernels on signal pads: each rank takes a peer's slot from 0 to 1, and its own
     * back from 1 to 0. A rank may be at its next barrier before a peer has left this one.
     */
    PADS(
        """
        bit pad[N * N];  /* slot of rank r for what rank s signals at r * N + s */
        """,
        """
        inline meet(me) {
          for (i : 0 .. N - 1) {
            atomic { pad[i * N + me] == 0 -> pad[i * N + me] = 1 }
          }
          for (i : 0 .. N - 1) {
            atomic { pad[me * N + i] == 1 -> pad[me * N + i] = 0 }
          }
        }
        """),
    /** Wrong: as above, but a signal does not wait until the one before was taken. */
    STORED_PADS(
        """
        bit pad[N * N];
        """,
        """
        inline meet(me) {
          for (i : 0 .. N - 1) {
            pad[i * N + me] = 1
          }
          for (i : 0 .. N - 1) {
            atomic { pad[me * N + i] == 1 -> pad[me * N + i] = 0 }
          }
        }
        """),
    /** As vLLM's kernels: counters only rise, in two places that alternate. */
    COUNTERS(
        """
        byte pad[N * N * 2];  /* and at * 2 + count % 2 */
        """,
        """
        inline meet(me) {
          mine++;
          for (i : 0 .. N - 1) {
            pad[(i * N + me) * 2 + mine % 2] = mine
          }
          for (i : 0 .. N - 1) {
            pad[(me * N + i) * 2 + mine % 2] == mine
          }
        }
        """),
    /** Wrong: in one place, a fast rank's next count is there before a slow one saw this one. */
    COUNTERS_IN_ONE_PLACE(
        """
        byte pad[N * N];
        """,
        """
        inline meet(me) {
          mine++;
          for (i : 0 .. N - 1) {
            pad[i * N + me] = mine
          }
          for (i : 0 .. N - 1) {
            pad[me * N + i] == mine
          }
        }
        """),
    /** Wrong: the count that all wait for is reset by the first that leaves. */
    RESET_BY_THE_FIRST(
        """
        byte here;
        """,
        """
        inline meet(me) {
          here++;
          here == N;
          here = 0
        }
        """);

    private final String memory;
    private final String meet;

    Barrier(String memory, String meet) {
      this.memory = memory;
      this.meet = meet;
    }

    String model(int ranks) {
      return """
      #define N %s
      #define TIMES 3

      %sbyte came[N];

      %s
      proctype rank(byte me) {
        byte times, mine, i;
        do
        :: times < TIMES ->
          came[me]++;
          meet(me);
          times++;
          d_step {
            for (i : 0 .. N - 1) {
              assert(came[i] >= times)
            }
          }
        :: else -> break
        od
      }

      init {
        atomic {
      %s
        }
      }
      """
          .formatted(
              ranks,
              memory,
              meet,
              IntStream.range(0, ranks)
                  .mapToObj("    run rank(%s)"::formatted)
                  .collect(Collectors.joining(";\n")));
    }
  }

  @Test
  void nobodyLeavesBeforeAllHaveCome() {
    Spin.assumePresent();
    var models = new LinkedHashMap<String, String>();
    for (var barrier : List.of(Barrier.GENERATION, Barrier.PADS, Barrier.COUNTERS)) {
      models.putAll(Spin.ofRanks(barrier.name(), barrier::model));
    }
    Spin.assertSafe(models);
  }

  @Test
  void wrongOnesAreFound() {
    Spin.assumePresent();
    Spin.assertUnsafe(
        Stream.of(Barrier.STORED_PADS, Barrier.COUNTERS_IN_ONE_PLACE, Barrier.RESET_BY_THE_FIRST)
            .collect(Collectors.toMap(Barrier::name, barrier -> barrier.model(2))),
        "invalid end state|assertion violated.*");
  }

  @ParameterizedTest
  @ValueSource(strings = {"generation", "pads", "counters"})
  void modelsAreReadable(String name) {
    var barrier = Barrier.valueOf(com.google.common.base.Ascii.toUpperCase(name));
    Golden.check("models/barrier-" + name + ".pml", barrier.model(3));
  }
}
