package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("counts the threads of all sessions")
@Timeout(60)
class HostSessionTest {

  static final String SUM =
      """
      group g = [0, 1, 2, 3]
      graph sum(x: f32[8, 4]) {
        h = aten::relu(x)
        r = _c10d_functional::all_reduce(h, "sum", "g")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  private static Plan external(String text) {
    return Programs.plan(
        text,
        CompileOptions.DEFAULT.withInputs(MemorySpace.EXTERNAL).withOutputs(MemorySpace.EXTERNAL));
  }

  /** {@return the threads of sessions that are alive, but for those that were so before} */
  static Set<Thread> liveThreads(Set<Thread> before) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("symplan-rank-") && thread.isAlive())
        .filter(thread -> !before.contains(thread))
        .collect(Collectors.toSet());
  }

  @Test
  void runsAgainAndAgain() {
    try (var session = Session.open(Programs.plan(SUM), new HostBackend())) {
      var random = new Random(7);
      for (int run = 0; run < 100; run++) {
        if (run % 10 == 0) {
          Programs.fillInputs(session, random);
        }
        session.run();
        for (int rank = 0; rank < 4; rank++) {
          var output = session.output(rank, 0).orElseThrow();
          for (int i = 0; i < 8; i++) {
            float sum = 0;
            for (int peer = 0; peer < 4; peer++) {
              sum += (float) Math.max(0, session.input(peer, "x").get(i, 2));
            }
            assertThat(output.get(i, 2)).isEqualTo(sum);
          }
        }
      }
    }
  }

  @Test
  void endsItsThreads() {
    var before = liveThreads(Set.of());
    try (var session = Session.open(Programs.plan(SUM), new HostBackend())) {
      session.run();
      assertThat(liveThreads(before)).hasSize(4);
    }
    assertThat(liveThreads(before)).isEmpty();
  }

  @Test
  void usesTheCallersMemory() {
    var type = TensorType.contiguous(DType.F32, 8, 4);
    try (var arena = Arena.ofShared();
        var session = Session.open(external(SUM), new HostBackend())) {
      Programs.fillInputs(session, new Random(1));
      session.run();
      var output = HostTensor.allocate(arena, type);
      for (int rank = 0; rank < 4; rank++) {
        var input = HostTensor.allocate(arena, type);
        input.set(rank + 1, 7, 3);
        session.bindInput(rank, 0, input);
        assertThat(session.input(rank, 0).orElseThrow().memory().address())
            .isEqualTo(input.memory().address());
      }
      session.bindOutput(1, 0, output);
      session.run();
      assertThat(output.get(7, 3)).isEqualTo(10);
      assertThat(output.get(0, 0)).isZero();
      assertThat(session.output(1, 0).orElseThrow().memory().address())
          .isEqualTo(output.memory().address());
    }
  }

  @Test
  void usesMemoryThatLiesWhereFreedMemoryLay() {
    var type = TensorType.contiguous(DType.F32, 8, 4);
    try (var place = Arena.ofShared();
        var session = Session.open(external(SUM), new HostBackend())) {
      Programs.fillInputs(session, new Random(1));
      var input = HostTensor.allocate(place, type).memory();
      var output = HostTensor.allocate(place, type).memory();
      for (int run = 0; run < 2; run++) {
        try (var owner = Arena.ofShared()) {
          session.bindInput(0, 0, new HostTensor(input.reinterpret(owner, null), type));
          session.bindOutput(1, 0, new HostTensor(output.reinterpret(owner, null), type));
          assertThatCode(session::run).doesNotThrowAnyException();
        }
      }
    }
  }

  @Test
  void refusesMemoryThatDoesNotFit() {
    try (var confined = Arena.ofConfined();
        var session = Session.open(external(SUM), new HostBackend())) {
      var type = TensorType.contiguous(DType.F32, 8, 4);
      assertThatThrownBy(
              () ->
                  session.bindInput(
                      2, 0, HostTensor.allocate(TensorType.contiguous(DType.F32, 4, 8))))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("input 'x' of rank 2 is f32[8, 4], not f32[4, 8]");
      assertThatThrownBy(
              () ->
                  session.bindOutput(
                      0, 0, HostTensor.allocate(TensorType.contiguous(DType.F64, 8, 4))))
          .hasMessage("output 0 of rank 0 is f32[8, 4], not f64[8, 4]");
      assertThatThrownBy(
              () ->
                  session.bindInput(
                      0, 0, new HostTensor(MemorySegment.ofArray(new byte[128]), type)))
          .hasMessageContaining("Java heap");
      assertThatThrownBy(() -> session.bindInput(0, 0, HostTensor.allocate(confined, type)))
          .hasMessageContaining("confined to a thread");
      assertThatThrownBy(
              () ->
                  session.bindOutput(
                      0, 0, new HostTensor(confined.allocate(128).asReadOnly(), type)))
          .hasMessageContaining("read-only");
    }
    try (var session = Session.open(Programs.plan(SUM), new HostBackend())) {
      assertThatThrownBy(
              () ->
                  session.bindOutput(
                      0, 0, HostTensor.allocate(TensorType.contiguous(DType.F32, 8, 4))))
          .hasMessageContaining("planned");
      assertThatThrownBy(() -> session.input(0, "y")).hasMessageContaining("inputs: [x]");
    }
  }

  @Test
  void refusesReadOnlyMemoryThatAGraphWrites() {
    var text =
        """
        graph adds(x: f32[8, 4], y: f32[8, 4]) {
          z = aten::add_.Tensor(x, y)
          return z
        }
        """;
    var type = TensorType.contiguous(DType.F32, 8, 4);
    try (var arena = Arena.ofShared();
        var session = Session.open(external(text), new HostBackend())) {
      var memory = new HostTensor(arena.allocate(128).asReadOnly(), type);
      assertThatThrownBy(() -> session.bindInput(0, 0, memory))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "input 'x' of rank 0: the memory is read-only, and the graph may write into it");
      session.bindInput(0, 1, memory);
      session.run();
    }
  }

  @Test
  void showsMemoryThatNobodyWrote() {
    try (var session = Session.open(Programs.plan(SUM), new HostBackend())) {
      session.run();
      assertThat(session.output(3, 0).orElseThrow().get(0, 0)).isNaN();
    }
  }

  @Test
  void isClosedOnce() {
    var session = Session.open(Programs.plan(SUM), new HostBackend());
    session.close();
    session.close();
    assertThatThrownBy(session::run).hasMessage("the session is closed");
    assertThatThrownBy(() -> session.output(0, 0)).hasMessage("the session is closed");
  }

  @Test
  void givesCustomOpsTheirPeers() {
    var text =
        """
        group g = [0, 1], [3, 2]
        op test_session::swap(Tensor input, str group) -> Tensor  symm_mem(input) group(group)
        graph swap(x: f32[4]) {
          h = aten::relu(x)
          e: f32[4] = test_session::swap(h, "g")
          o = aten::relu(e)
          return o
        }
        """;
    HostKernel swap =
        call -> {
          var group = call.group();
          call.result().copyFrom(group.peers("input").get(1 - group.self()));
        };
    try (var _ = HostKernels.register("test_session::swap", swap);
        var session = Session.open(Programs.plan(text), new HostBackend())) {
      for (int run = 0; run < 50; run++) {
        for (int rank = 0; rank < 4; rank++) {
          for (int i = 0; i < 4; i++) {
            session.input(rank, "x").set(run + rank, i);
          }
        }
        session.run();
        for (int rank = 0; rank < 4; rank++) {
          assertThat(session.output(rank, 0).orElseThrow().get(3)).isEqualTo(run + (rank ^ 1));
        }
      }
    }
  }

  /** As in PyTorch's own example: no parameter names a group, so all ranks are it. */
  @Test
  void customOpsWithoutAGroupReachAllRanks() {
    var text =
        """
        op test_session::rotate(Tensor input) -> Tensor  symm_mem(input)
        graph rotate(x: f32[4]) ranks [0, 1, 2] {
          h = aten::relu(x)
          e: f32[4] = test_session::rotate(h)
          return e
        }
        """;
    HostKernel rotate =
        call -> {
          var group = call.group();
          call.result().copyFrom(group.peers("input").get((group.self() + 1) % group.size()));
        };
    try (var _ = HostKernels.register("test_session::rotate", rotate);
        var session = Session.open(Programs.plan(text), new HostBackend())) {
      for (int rank = 0; rank < 3; rank++) {
        session.input(rank, "x").set(rank, 3);
      }
      session.run();
      for (int rank = 0; rank < 3; rank++) {
        assertThat(session.output(rank, 0).orElseThrow().get(3)).isEqualTo((rank + 1) % 3);
      }
    }
  }
}
