package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.function.IntFunction;
import java.util.function.ObjIntConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class PlanAgreementTest {
  private static Executable executable(int ranks, String reduceOp) {
    return executable(ranks, reduceOp, Variant.TWO_SHOT);
  }

  private static Executable executable(int ranks, String reduceOp, Variant variant) {
    var text =
        """
        graph version 1
        group g = [%s]
        graph sum(x: f32[4096]) {
          r = _c10d_functional::all_reduce(x, "%s", "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """
            .formatted(ranks == 2 ? "0, 1" : "0, 1, 2", reduceOp);
    return Lowering.lower(
        Compiler.forTarget(Target.H200_X4)
            .with(
                CompileOptions.DEFAULT
                    .withRanks(ranks)
                    .withVariants(ImmutableMap.of("all_reduce", variant)))
            .compile(GraphParser.parse(new SourceFile("sum.graph", text))));
  }

  /** Each rank's objection to its executable; empty if it agrees. */
  private static List<String> check(int processes, IntFunction<Executable> executables) {
    return check(processes, _ -> "", executables);
  }

  private static List<String> check(
      int processes, IntFunction<String> hosts, IntFunction<Executable> executables) {
    return check(
        processes, hosts, (world, rank) -> PlanAgreement.check(executables.apply(rank), world));
  }

  private static List<String> check(
      int processes, IntFunction<String> hosts, ObjIntConsumer<World> check) {
    int port = ChildProcess.freePort();
    try (var threads = Executors.newCachedThreadPool()) {
      var said = new ArrayList<CompletableFuture<String>>();
      for (int rank = 0; rank < processes; rank++) {
        int self = rank;
        said.add(
            CompletableFuture.supplyAsync(
                () -> {
                  var environment =
                      new LaunchEnvironment(
                              Launcher.MPIRUN, self, processes, self, "localhost", port, "")
                          .withHostId(hosts.apply(self));
                  try (var world = World.join(environment, Duration.ofSeconds(20))) {
                    check.accept(world, self);
                    world.barrier("end");
                    return "";
                  } catch (RunException e) {
                    return String.valueOf(e.getMessage());
                  }
                },
                threads));
      }
      return said.stream().map(CompletableFuture::join).toList();
    }
  }

  @Test
  void theSamePlanIsAgreedOn() {
    assertThat(check(3, _ -> executable(3, "sum"))).containsOnly("");
  }

  @Test
  void theFirstDifferenceIsNamedByAll() {
    var said = check(2, rank -> executable(2, rank == 0 ? "sum" : "avg"));
    assertThat(said)
        .allSatisfy(
            message ->
                assertThat(message)
                    .startsWith("ranks 0 and 1 do not have the same plan: rank 0 has ")
                    .contains("all_reduce two_shot sum of 2 ranks")
                    .contains("all_reduce two_shot avg of 2 ranks")
                    .contains("'r' (sum.graph:4)"));
  }

  @Test
  void theNumberOfProcessesMustFit() {
    assertThat(check(2, _ -> executable(3, "sum")))
        .containsOnly("the plan is for 3 ranks, but mpirun started 2 processes");
  }

  @Test
  void ranksThatReachEachOtherMustBeOnOneHost() {
    assertThat(check(3, rank -> rank == 1 ? "b" : "a", _ -> executable(3, "sum")))
        .containsOnly(
            "'r' (sum.graph:4) runs as two_shot, for which ranks 0, 1, 2 must be on one host; but"
                + " ranks 0, 2 are on a, rank 1 is on b. Plan for these hosts:"
                + " --hosts '[0, 2], [1]'");
  }

  private static Executable scattered() {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph scatter(x: f32[4096]) {
          r = _c10d_functional::reduce_scatter_tensor(x, "sum", 2, "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    return Lowering.lower(
        Compiler.forTarget(Target.H200_X4)
            .with(
                CompileOptions.DEFAULT.withVariants(
                    ImmutableMap.of("reduce_scatter", Variant.NCCL_SYMM)))
            .compile(GraphParser.parse(new SourceFile("scatter.graph", text))));
  }

  /** Where NCCL carries windows between hosts, it does without a common one, but kernels do not. */
  @Test
  void windowsNeedNoCommonHostIfNcclCarriesThem() {
    IntFunction<String> hosts = rank -> "host" + rank;
    assertThat(check(2, hosts, _ -> scattered()))
        .allSatisfy(message -> assertThat(message).contains("must be on one host"));
    assertThat(check(2, hosts, (world, _) -> PlanAgreement.check(scattered(), world, world::hosts)))
        .containsOnly("");
    assertThat(
            check(
                2,
                hosts,
                (world, _) -> PlanAgreement.check(executable(2, "sum"), world, world::hosts)))
        .allSatisfy(message -> assertThat(message).contains("must be on one host"));
  }

  /** Hosts of one fabric pass for one. */
  @Test
  void memoryMayReachFurtherThanAHost() {
    var one = new Host("fabric", "f");
    assertThat(
            check(
                2,
                rank -> "host" + rank,
                (world, _) ->
                    PlanAgreement.check(
                        executable(2, "sum"), world, () -> ImmutableList.of(one, one))))
        .containsOnly("");
    assertThat(PlanAgreement.peers(executable(3, "sum"), 1)).containsExactly(0, 2);
    assertThat(PlanAgreement.peers(executable(3, "sum", Variant.NCCL), 1)).isEmpty();
  }

  @Test
  void ncclNeedsNoCommonHost() {
    assertThat(check(3, rank -> rank == 1 ? "b" : "a", _ -> executable(3, "sum", Variant.NCCL)))
        .containsOnly("");
  }
}
