package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.testkit.RankProcesses;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.SeededInputs;
import dev.symplan.runtime.tensor.TensorDiff;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** One process for each of 2 to 4 GPUs, as torchrun starts them. */
@Tag("gpu")
@Timeout(240)
class ProcessesOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  private static final ImmutableMap<String, Variant> OWN =
      ImmutableMap.of(
          "all_reduce", Variant.TWO_SHOT,
          "all_gather", Variant.PUSH,
          "reduce_scatter", Variant.ONE_SHOT,
          "all_to_all", Variant.COPY_ENGINE,
          "broadcast", Variant.ONE_SHOT,
          "collective_permute", Variant.PUSH);

  /** Peers' memory must be empty before the first of these. */
  private static final ImmutableMap<String, Variant> PUSHED =
      ImmutableMap.<String, Variant>builder()
          .putAll(OWN)
          .put("all_reduce", Variant.ONE_SHOT_PUSH)
          .put("broadcast", Variant.TWO_SHOT)
          .buildKeepingLast();

  /** Sums alone, which NCCL has symmetric kernels for. */
  private static final String BY_NCCL =
      """
      graph version 1
      group all = [0:%1$s]
      graph by_nccl(x: f32[1024, 64], y: f32[3072]) {
        a = _c10d_functional::all_reduce(x, "sum", "all")
        b = _c10d_functional::wait_tensor(a)
        c = _c10d_functional::all_gather_into_tensor(b, %1$s, "all")
        d = _c10d_functional::wait_tensor(c)
        e = _c10d_functional::reduce_scatter_tensor(y, "avg", %1$s, "all")
        f = _c10d_functional::wait_tensor(e)
        return d, f
      }
      """;

  private static final ImmutableMap<String, Variant> NCCL =
      ImmutableMap.of(
          "all_reduce", Variant.NCCL_SYMM,
          "all_gather", Variant.NCCL_SYMM,
          "reduce_scatter", Variant.NCCL);

  @RegisterExtension final RankProcesses processes = new RankProcesses();

  private List<ChildProcess> children = List.of();

  private static Plan byNccl(int ranks) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withVariants(NCCL))
        .compile(GraphParser.parse(new SourceFile("by_nccl.graph", BY_NCCL.formatted(ranks))));
  }

  /** One rank: what the test asks for, and a line for it. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) {
      int ranks = Integer.parseInt(System.getenv("WORLD_SIZE"));
      try {
        switch (args[0]) {
          case "compare" -> {
            compare(EveryKind.plan(ranks, OWN), true);
            compare(EveryKind.plan(ranks, PUSHED), true);
            compare(byNccl(ranks), false);
          }
          case "forever" ->
              forever(args[1].equals("own") ? EveryKind.plan(ranks, OWN) : byNccl(ranks));
          case "apart" -> {
            compare(byNccl(ranks), false);
            System.out.println("nccl runs");
            compare(EveryKind.plan(ranks, OWN), true);
          }
          case "disagree" -> {
            var variants = ImmutableMap.<String, Variant>builder().putAll(OWN);
            if (System.getenv("RANK").equals("1")) {
              variants.put("all_reduce", Variant.ONE_SHOT);
            }
            compare(EveryKind.plan(ranks, variants.buildKeepingLast()), true);
          }
          default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println("ok");
        System.exit(0);
      } catch (RunException e) {
        System.out.println("failed: " + e.getMessage());
        System.exit(4);
      }
    }

    private static Session open(Plan plan) {
      return Session.open(plan, new CudaBackend(), SessionOptions.DEFAULT.withTimeout(TIMEOUT));
    }

    private static void fill(Session session) {
      for (int rank : session.localRanks()) {
        SeededInputs.fill(session.input(rank, "x"), 5, rank, "x");
        SeededInputs.fill(session.input(rank, "y"), 5, rank, "y");
      }
    }

    private static void compare(Plan plan, boolean toTheBit) {
      try (var gpu = open(plan);
          var host = Session.open(plan, new HostBackend())) {
        fill(host);
        host.run();
        fill(gpu);
        for (int run = 0; run < 50; run++) {
          gpu.run();
          int rank = gpu.localRanks().first();
          for (int i = 0; i < gpu.outputCount(); i++) {
            var actual = gpu.output(rank, i).orElseThrow();
            var diff = TensorDiff.between(actual, host.output(rank, i).orElseThrow());
            if (toTheBit ? diff.maxAbs() != 0 : !diff.isWithin(actual.dtype())) {
              throw new RunException(
                  "output %s of rank %s, run %s: %s".formatted(i, rank, run, diff));
            }
          }
        }
      }
    }

    private static void forever(Plan plan) {
      var gpu = open(plan);
      fill(gpu);
      gpu.run();
      System.out.println("running");
      while (true) {
        gpu.run();
      }
    }
  }

  private void launch(String... args) {
    launch(_ -> List.of(), args);
  }

  private void launch(IntFunction<List<String>> options, String... args) {
    children = processes.launch(options, Child.class, Gpus.ranks(), args);
  }

  @Test
  void agreeWithTheHost() throws Exception {
    launch("compare");
    for (var child : children) {
      assertThat(child.rest()).isEqualTo("ok\n");
      assertThat(child.process().waitFor()).isZero();
    }
  }

  @Test
  void anotherPlanIsRefused() throws Exception {
    launch("disagree");
    for (var child : children) {
      assertThat(child.rest()).contains("failed: ranks 0 and 1 do not have the same plan");
      assertThat(child.process().waitFor()).isEqualTo(4);
    }
  }

  @Test
  void withoutPeersMemoryNcclStillRuns() throws Exception {
    launch(rank -> rank == 1 ? List.of("-Djava.io.tmpdir=/proc") : List.of(), "apart");
    for (var child : children) {
      assertThat(child.rest())
          .startsWith("nccl runs\nfailed: ")
          .contains("cannot reach the memory of rank")
          .contains("no socket can be made");
      assertThat(child.process().waitFor()).isEqualTo(4);
    }
  }

  /** So that what the GPU tests run is known to be a plan where no GPU was found, too. */
  @Test
  void thePlansCompile() {
    for (int ranks = 2; ranks <= 4; ranks++) {
      assertThat(EveryKind.plan(ranks, OWN).worldSize()).isEqualTo(ranks);
      assertThat(EveryKind.plan(ranks, PUSHED).worldSize()).isEqualTo(ranks);
      assertThat(byNccl(ranks).worldSize()).isEqualTo(ranks);
    }
  }

  @Test
  void aKilledRankEndsTheOthers() throws Exception {
    killed("own");
  }

  @Test
  void aKilledRankEndsTheOthersInNccl() throws Exception {
    killed("nccl");
  }

  /** A process without a sound for 10 s is gone; kernels alone would wait 18 s. */
  @Test
  void aFrozenRankEndsTheOthers() throws Exception {
    launch("forever", "own");
    children.forEach(child -> child.line("running"));
    long victim = children.getLast().process().pid();
    assertThat(new ProcessBuilder("kill", "-STOP", Long.toString(victim)).start().waitFor())
        .isZero();
    othersEnd(System.nanoTime());
  }

  private void killed(String variants) throws Exception {
    launch("forever", variants);
    children.forEach(child -> child.line("running"));
    children.getLast().process().destroyForcibly();
    othersEnd(System.nanoTime());
  }

  private void othersEnd(long begin) throws Exception {
    int last = children.size() - 1;
    for (var child : children.subList(0, last)) {
      assertThat(child.rest()).contains("failed: ").contains("rank " + last);
      assertThat(child.process().waitFor(10, TimeUnit.SECONDS)).isTrue();
      assertThat(child.process().exitValue()).isEqualTo(4);
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(TIMEOUT);
  }
}
