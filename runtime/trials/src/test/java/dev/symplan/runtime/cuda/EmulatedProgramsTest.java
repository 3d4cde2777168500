package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.DrawnAgain;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Kernels that are generated for ops, run on this machine's processor, against the host backend.
 * Others with {@code -Dsymplan.seed=N}.
 */
@Order(2) // At the end, nothing would run beside it.
class EmulatedProgramsTest {
  private static final long SEED = Fuzz.seed(7_000);
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 40);

  /** Runs all and compares all results; the order of threads and blocks must not matter. */
  private static void check(List<String> texts) {
    var plans = texts.stream().map(LocalPrograms::plan).toList();
    var sessions = EmulatedSession.open(plans.stream().map(Lowering::lower).toList());
    for (int i = 0; i < plans.size(); i++) {
      try (var emulated = sessions.get(i);
          var host = Session.open(plans.get(i), new HostBackend())) {
        LocalPrograms.fill(host, i);
        // To make them up again would take longer than to run.
        var inputs =
            IntStream.range(0, host.inputNames().size())
                .mapToObj(input -> host.input(0, input).orElseThrow())
                .map(input -> input.copyAs(input.type().contiguous()))
                .toList();
        host.run();
        do {
          checkTurns(plans.get(i), emulated, host, inputs, texts.get(i));
        } while (emulated.nextGpu());
      }
    }
  }

  private static void checkTurns(
      Plan plan, EmulatedSession emulated, Session host, List<HostTensor> inputs, String text) {
    var first = new ArrayList<HostTensor>();
    for (int run = 0; run < 2; run++) {
      for (int i = 0; i < inputs.size(); i++) {
        emulated.input(0, i).orElseThrow().copyFrom(inputs.get(i));
      }
      emulated.run();
      LocalPrograms.compare(plan, emulated, host, text);
      for (int o = 0; o < emulated.outputCount(); o++) {
        var output = emulated.output(0, o).orElseThrow().contiguous();
        if (run == 0) {
          first.add(output);
        } else {
          Bits.assertSame(
              output, first.get(o), "output %s, threads the other way%n%s".formatted(o, text));
        }
      }
      emulated.turn();
    }
  }

  @Test
  void madeUpRows() {
    System.out.printf("%s programs from seed %s%n", PROGRAMS, SEED);
    check(LocalPrograms.madeUpRows(SEED, PROGRAMS));
  }

  @Test
  void madeUpPieces() {
    System.out.printf("%s programs from seed %s%n", PROGRAMS, SEED);
    check(LocalPrograms.madeUpPieces(SEED, PROGRAMS));
  }

  /** A tenth as many, as each takes a second. */
  @Test
  void madeUpPairs() {
    int count = Math.ceilDiv(PROGRAMS, 10);
    System.out.printf("%s programs from seed %s%n", count, SEED);
    var texts = LocalPrograms.madeUpPairs(SEED, count);
    check(texts);
    assertThat(texts)
        .filteredOn(
            text ->
                DeviceLowering.lower(Lowering.lower(LocalPrograms.plan(text)))
                    .getFirst()
                    .steps()
                    .stream()
                    .anyMatch(EmulatedProgramsTest::isOfPair))
        .hasSizeGreaterThan(count / 3);
  }

  private static boolean isOfPair(DeviceStep step) {
    return step instanceof HopperLaunch
        || step instanceof Launch launch && launch.shares().size() == 3;
  }

  @Test
  void madeUpTurned() {
    System.out.printf("%s programs from seed %s%n", PROGRAMS, SEED);
    check(LocalPrograms.madeUpTurned(SEED, PROGRAMS));
  }

  @Test
  void reductions() {
    check(LocalPrograms.reductions());
  }

  @Test
  void partsOfRows() {
    check(LocalPrograms.partsOfRows());
  }

  @Test
  void longTensors() {
    check(LocalPrograms.longTensors());
  }

  @Test
  void elements() {
    check(LocalPrograms.elements());
  }

  @Test
  void places() {
    check(LocalPrograms.places());
  }

  @Test
  void rounded() {
    check(LocalPrograms.rounded());
  }

  @Test
  void halves() {
    check(LocalPrograms.halves());
  }

  @Test
  void randomNumbers() {
    check(LocalPrograms.randomNumbers());
  }

  /** With activation checkpoints, the backward graph draws again what the forward graph drew. */
  @Test
  void bothGraphsDrawTheSameNumbers(@TempDir Path folder) throws IOException {
    var plans = new ArrayList<Plan>();
    for (var handing : DrawnAgain.Handing.values()) {
      for (var call : DrawnAgain.all().toList()) {
        plans.add(call.plan(handing, folder));
      }
    }
    var sessions = EmulatedSession.open(plans.stream().map(Lowering::lower).toList());
    for (int p = 0; p < sessions.size(); p++) {
      try (var session = sessions.get(p)) {
        DrawnAgain.fill(session);
        session.run();
        int half = session.outputCount() / 2;
        assertThat(half).isPositive();
        for (int i = 0; i < half; i++) {
          Bits.assertSame(
              session.output(0, i).orElseThrow(),
              session.output(0, half + i).orElseThrow(),
              "%s of %s".formatted(i, plans.get(p).forRank(0).graph()));
        }
      }
    }
  }

  @Test
  void sorts() {
    check(PlacePrograms.sorts());
  }

  @Test
  void choices() {
    check(PlacePrograms.choices());
  }

  @Test
  void windows() {
    check(PlacePrograms.windows());
  }

  @Test
  void convolutions() {
    System.out.printf("%s programs from seed %s%n", 2 * PROGRAMS, SEED);
    check(ConvolutionPrograms.programs(SEED, PROGRAMS));
    check(ConvolutionPrograms.parts());
    check(ConvolutionPrograms.apart());
  }

  @Test
  void scattered() {
    check(PlacePrograms.scattered());
  }

  @Test
  void shapesOfProducts() {
    check(PlacePrograms.shapes());
  }

  @Test
  void moves() {
    check(LocalPrograms.moves());
  }

  @Test
  void comparisons() {
    check(LocalPrograms.comparisons());
  }

  @Test
  void shortFloats() {
    check(LocalPrograms.shortFloats());
  }

  @Test
  void edges() {
    check(LocalPrograms.edges());
  }

  @Test
  void products() {
    check(LocalPrograms.products());
  }

  @Test
  void groupedProducts() {
    check(LocalPrograms.groupedProducts());
  }

  /** By tensor cores and one by one; on GPUs, the context could not be used afterwards. */
  @Test
  void endsOfGroupsThatAreWrongAreNotFollowed() {
    var plans =
        Stream.of("bf16", "f32")
            .flatMap(
                dtype ->
                    Stream.of("x, w, o", "w, x, o", "r, x, o")
                        .map(
                            operands ->
                                """
                                graph version 1
                                graph t(x: %s[8, 8], w: %1$s[3, 8, 8], o: i32[3]) {
                                  r = aten::permute(x, [1, 0])
                                  a = aten::_grouped_mm(%s)
                                  return a
                                }
                                """
                                    .formatted(dtype, operands)))
            .map(LocalPrograms::plan)
            .toList();
    var sessions = EmulatedSession.open(plans.stream().map(Lowering::lower).toList());
    for (int i = 0; i < plans.size(); i++) {
      try (var emulated = sessions.get(i);
          var host = Session.open(plans.get(i), new HostBackend())) {
        for (var wrong : new int[][] {{3, 2, 8}, {3, 5, 9}, {-1, 5, 8}}) {
          for (var session : List.of(emulated, host)) {
            LocalPrograms.fill(session, 1);
            for (int group = 0; group < wrong.length; group++) {
              session.input(0, "o").setLong(wrong[group], group);
            }
          }
          assertThatThrownBy(emulated::run).hasMessageContaining("a trap of 'a'");
          assertThatThrownBy(host::run).hasMessageContaining("offs ends group");
        }
      }
    }
  }

  @Test
  void joinedProducts() {
    check(LocalPrograms.joinedProducts());
  }

  @Test
  void pairedProducts() {
    check(LocalPrograms.pairedProducts());
  }

  @Test
  void fewTokens() {
    check(LocalPrograms.fewTokens());
  }

  @Test
  void tokenProducts() {
    check(LocalPrograms.tokenProducts());
  }

  /** Whether products share a launch depends on what else there is: it must not change results. */
  @Test
  void launchesThatAreJoinedGiveTheSameBits() {
    var texts = LocalPrograms.joinedProducts();
    var executables = texts.stream().map(LocalPrograms::plan).map(Lowering::lower).toList();
    var joined = EmulatedSession.open(executables);
    var apart = EmulatedSession.openOneByOne(executables);
    assertThat(joined.stream().map(EmulatedSession::launches))
        .containsExactly(1L, 1L, 1L, 1L, 1L, 2L, 3L);
    assertThat(apart.stream().map(EmulatedSession::launches))
        .containsExactly(3L, 3L, 3L, 3L, 3L, 4L, 3L);
    for (int i = 0; i < texts.size(); i++) {
      LocalPrograms.fill(joined.get(i), i);
      LocalPrograms.fill(apart.get(i), i);
      joined.get(i).run();
      apart.get(i).run();
      Bits.assertSame(joined.get(i), apart.get(i), texts.get(i));
    }
  }

  @Test
  void attention() {
    check(LocalPrograms.attention());
  }

  @Test
  void composites() {
    check(LocalPrograms.composites());
  }

  @Test
  void complexNumbers() {
    check(LocalPrograms.complexNumbers());
  }

  /** Ranks' own work around an exchange whose splits only the device knows. */
  @ParameterizedTest
  @MethodSource("dev.symplan.runtime.cuda.SplitExchange#calls")
  void exchangesBySplits(String call) {
    for (int ranks = 2; ranks <= 3; ranks++) {
      var exchange = SplitExchange.of(call, ranks);
      var plan = exchange.plan();
      try (var emulated = EmulatedSession.open(List.of(Lowering.lower(plan))).getFirst();
          var host = Session.open(plan, new HostBackend())) {
        for (var splits : SplitExchange.Splits.values()) {
          for (long seed = 0; seed < (splits == SplitExchange.Splits.UNEVEN ? 12 : 1); seed++) {
            for (var session : List.of(emulated, host)) {
              exchange.fill(session, splits, SEED + seed);
              session.run();
            }
            Bits.assertSame(emulated, host, call + ", " + splits + ", " + seed);
          }
        }
      }
    }
  }
}
