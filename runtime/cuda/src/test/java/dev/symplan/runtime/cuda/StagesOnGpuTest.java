package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.Transfers;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.OutputCheck;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Ranks with different graphs, which may run the same collective in different streams. */
@Tag("gpu")
class StagesOnGpuTest {
  private static final long SEED = Fuzz.seed(22_990_000);
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 60);
  private static final int RUNS = 5;

  @BeforeEach
  void requireGpus() {
    Gpus.require(2);
  }

  @Test
  void stagesGiveWhatTheHostGives() {
    int ranks = Gpus.ranks();
    var seeds =
        LongStream.iterate(SEED, seed -> seed + 1)
            .filter(seed -> program(seed, ranks).hosts().length() == ranks)
            .limit(PROGRAMS)
            .toArray();
    int different = 0;
    for (long seed : seeds) {
      var program = program(seed, ranks);
      var plan = plan(program, seed % 2 == 0);
      different += haveOtherStreams(plan) ? 1 : 0;
      var what = "seed %s%n%s".formatted(seed, program.text());
      try (var gpu = Session.open(plan, new CudaBackend());
          var host = Session.open(plan, new HostBackend())) {
        for (int run = 0; run < RUNS; run++) {
          fill(gpu, run);
          fill(host, run);
          gpu.run();
          host.run();
          for (int rank : gpu.localRanks()) {
            for (var check : OutputCheck.of(plan, gpu, rank, LocalPrograms.outputs(host, rank))) {
              assertThat(check.agrees()).as("run %s, %s%n%s", run, check, what).isTrue();
            }
          }
        }
      }
    }
    System.out.printf(
        "%s programs from seed %s, %s with a collective in different streams%n",
        seeds.length, SEED, different);
    assertThat(different).isPositive();
  }

  private static StageProgram program(long seed, int ranks) {
    return StageProgram.draw(
        new Random(seed), ranks - 1, List.of(DType.F32, DType.I32, DType.BF16));
  }

  /**
   * @param apart whether to plan for ranks on different hosts, which only NCCL connects
   */
  private static Plan plan(StageProgram program, boolean apart) {
    var options =
        apart
            ? CompileOptions.DEFAULT.withHosts(new Hosts(program.hosts()))
            : CompileOptions.DEFAULT.withRanks(program.hosts().length());
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("stages.graph", program.text())));
  }

  /** Whether some collective is in other streams on some of its ranks. */
  private static boolean haveOtherStreams(Plan plan) {
    var transfers = new Transfers(Lowering.lower(plan));
    return IntStream.range(0, plan.worldSize())
        .mapToObj(transfers::ofRank)
        .flatMap(Collection::stream)
        .anyMatch(
            collective ->
                IntStream.range(0, collective.group().members().length())
                    .anyMatch(
                        member ->
                            transfers.at(member, collective).stream() != collective.stream()));
  }

  private static void fill(Session session, int seed) {
    for (int rank : session.localRanks()) {
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        SeededInputs.fill(
            session.input(rank, i).orElseThrow(), seed, rank, session.inputNames(rank).get(i));
      }
    }
  }
}
