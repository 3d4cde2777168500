package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.tensor.SeededInputs;
import dev.symplan.runtime.tensor.TensorDiff;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One process for each GPU, as torchrun starts them. */
@Tag("gpu")
@Timeout(240)
class ProcessesOnGpuTest {
  private static final int RANKS = 4;
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private static final ImmutableMap<String, Variant> OWN =
      ImmutableMap.of(
          "all_reduce", Variant.TWO_SHOT,
          "all_gather", Variant.PUSH,
          "reduce_scatter", Variant.ONE_SHOT,
          "all_to_all", Variant.COPY_ENGINE,
          "broadcast", Variant.ONE_SHOT);

  private static final ImmutableMap<String, Variant> NCCL =
      ImmutableMap.of("all_reduce", Variant.NCCL_SYMM, "all_gather", Variant.NCCL);

  private List<ChildProcess> children = List.of();

  @AfterEach
  void stop() {
    children.forEach(child -> child.process().destroyForcibly());
  }

  private static Plan plan(ImmutableMap<String, Variant> variants) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withVariants(variants))
        .compile(Path.of(System.getProperty("symplan.root"), "samples", "collectives.graph"));
  }

  /** One rank: what the test asks for, and a line for it. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) {
      try {
        switch (args[0]) {
          case "compare" -> {
            compare(plan(OWN), true);
            compare(plan(NCCL), false);
          }
          case "forever" -> forever(plan(args[1].equals("own") ? OWN : NCCL));
          case "disagree" -> {
            var variants = ImmutableMap.<String, Variant>builder().putAll(OWN);
            if (System.getenv("RANK").equals("1")) {
              variants.put("all_reduce", Variant.ONE_SHOT);
            }
            compare(plan(variants.buildKeepingLast()), true);
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
      return Session.open(plan, new CudaBackend(), SessionOptions.DEFAULT.withTimeout(PATIENCE));
    }

    private static void fill(Session session) {
      for (int rank : session.localRanks()) {
        SeededInputs.fill(session.input(rank, "x"), 5, rank, "x");
        SeededInputs.fill(session.input(rank, "y"), 5, rank, "y");
      }
    }

    private static void compare(Plan plan, boolean toTheBit) {
      try (var gpu = open(plan);
          var host = Session.open(plan, Backend.HOST)) {
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
                  "output %d of rank %d, run %d: %s".formatted(i, rank, run, diff));
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
    var problem = Libraries.problem();
    assumeTrue(problem.isEmpty(), problem.orElse(""));
    assumeTrue(Devices.count() >= RANKS, "four GPUs are needed");
    children = ChildProcess.launch(Child.class, RANKS, args);
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
      assertThat(child.rest())
          .contains("failed: ranks 0 and 1 do not have the same plan")
          .contains("all_reduce");
      assertThat(child.process().waitFor()).isEqualTo(4);
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

  private void killed(String variants) throws Exception {
    launch("forever", variants);
    children.forEach(child -> child.line("running"));
    children.get(2).process().destroyForcibly();
    long begin = System.nanoTime();
    for (int rank : IntStream.of(0, 1, 3).toArray()) {
      var child = children.get(rank);
      assertThat(child.rest()).contains("failed: ").contains("rank 2");
      assertThat(child.process().waitFor(10, TimeUnit.SECONDS)).isTrue();
      assertThat(child.process().exitValue()).isEqualTo(4);
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(PATIENCE);
  }
}
