package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Each rank has a session of its own, which shares memory with those of its host and nothing with
 * the others. They are threads here; {@code HostProcessesTest} has processes.
 */
@Timeout(60)
class HostsTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  /** Each rank's results, each with a world and a session. */
  private static <T> List<T> onAll(
      MeshProgram mesh, Plan plan, BiFunction<World, Session, T> work) {
    int port = ChildProcess.freePort();
    try (var threads = Executors.newCachedThreadPool()) {
      return IntStream.range(0, mesh.ranks())
          .mapToObj(
              rank ->
                  CompletableFuture.supplyAsync(() -> on(rank, port, mesh, plan, work), threads))
          .toList()
          .stream()
          .map(CompletableFuture::join)
          .toList();
    }
  }

  private static <T> T on(
      int rank, int port, MeshProgram mesh, Plan plan, BiFunction<World, Session, T> work) {
    var environment =
        new LaunchEnvironment(
                Launcher.TORCHRUN, rank, mesh.ranks(), rank, "127.0.22.1", port, "hosts")
            .withHostId(mesh.host(rank));
    var options = SessionOptions.DEFAULT.withTimeout(TIMEOUT);
    try (var world = World.join(environment, TIMEOUT);
        var session = Session.open(plan, new HostBackend(), options.withWorld(world))) {
      assertThat(session.localRanks()).containsExactly(rank);
      return work.apply(world, session);
    }
  }

  private static void compare(MeshProgram mesh, ImmutableMap<String, Variant> variants) {
    var plan = mesh.plan(variants);
    var first = MeshProgram.inOneProcess(plan, 1);
    var second = MeshProgram.inOneProcess(plan, 2);
    assertThat(
            onAll(
                mesh,
                plan,
                (world, session) -> {
                  int rank = world.rank();
                  // Every other rank is late, which changes nothing.
                  return MeshProgram.same(MeshProgram.run(session, rank, 1), first.get(rank))
                      && MeshProgram.same(late(session, rank), second.get(rank));
                }))
        .containsOnly(true);
  }

  private static List<dev.symplan.runtime.tensor.HostTensor> late(Session session, int rank) {
    if (rank % 2 == 1) {
      sleep(100);
    }
    return MeshProgram.run(session, rank, 2);
  }

  private static void sleep(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 2", "3, 2", "2, 3", "4, 1", "1, 4", "4, 4"})
  void hostsGiveTheBitsOfOneProcess(int hosts, int local) {
    compare(new MeshProgram(hosts, local), ImmutableMap.of());
  }

  @ParameterizedTest
  @ValueSource(strings = {"nccl", "one_shot", "one_shot_push", "two_shot", "two_shot_push"})
  void soDoesEveryVariantWithinAHost(String variant) {
    compare(new MeshProgram(2, 2), ImmutableMap.of("a", Variant.ofText(variant).orElseThrow()));
  }

  @Test
  void aPlanForOneHostIsRefusedOnTwo() {
    var plan = new MeshProgram(1, 4).plan(ImmutableMap.of("a", Variant.TWO_SHOT));
    var two = new MeshProgram(2, 2);
    assertThatThrownBy(() -> onAll(two, plan, (world, _) -> world.rank()))
        .hasCauseInstanceOf(RunException.class)
        .hasMessageContaining("must be on one host; but ranks 0, 1 are on host0, ranks 2, 3 are on")
        .hasMessageContaining("Plan for these hosts: --hosts 2x2");
  }

  /** A plan for hosts of two runs where all are on one: that asks for less than there is. */
  @Test
  void aPlanForTwoHostsRunsOnOne() {
    var plan = new MeshProgram(2, 2).plan(ImmutableMap.of());
    var expected = MeshProgram.inOneProcess(plan, 1);
    assertThat(
            onAll(
                new MeshProgram(1, 4),
                plan,
                (world, session) ->
                    MeshProgram.same(
                        MeshProgram.run(session, world.rank(), 1), expected.get(world.rank()))))
        .containsOnly(true);
  }

  @Test
  void allHearWhyOneCannotGoOn() {
    var mesh = new MeshProgram(2, 2);
    var said =
        onAll(
            mesh,
            mesh.plan(ImmutableMap.of()),
            (world, session) -> {
              if (world.rank() == 3) {
                world.fail(1, "rank 3: the input 'x' is missing");
                return "rank 3: the input 'x' is missing";
              }
              MeshProgram.fill(session, world.rank(), 1);
              try {
                session.run();
                return "no failure";
              } catch (RunException e) {
                return String.valueOf(e.getMessage());
              }
            });
    assertThat(said)
        .allSatisfy(text -> assertThat(text).endsWith("rank 3: the input 'x' is missing"));
  }

  @Test
  void otherRanksBelongToOtherProcesses() {
    var mesh = new MeshProgram(1, 2);
    assertThat(
            onAll(
                mesh,
                mesh.plan(ImmutableMap.of()),
                (world, session) -> {
                  assertThatThrownBy(() -> session.input(1 - world.rank(), 0))
                      .isInstanceOf(IllegalArgumentException.class)
                      .hasMessageContaining("does not belong to this process");
                  return true;
                }))
        .containsOnly(true);
  }
}
