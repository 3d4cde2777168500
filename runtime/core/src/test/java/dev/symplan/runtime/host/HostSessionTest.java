package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Variant;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class HostSessionTest {

  private static final String SUM =
      """
      group g = [0, 1, 2, 3]
      graph sum(x: f32[8, 4]) {
        h = aten::relu(x)
        r = _c10d_functional::all_reduce(h, "sum", "g")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  /** An op whose kernel a test chooses. */
  private static final String CUSTOM =
      """
      group g = [0, 1, 2, 3]
      op test_session::step(Tensor input) -> Tensor
      graph steps(x: f32[8]) {
        h: f32[8] = test_session::step(x)
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
  private static Set<Thread> liveThreads(Set<Thread> before) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("symplan-rank-") && thread.isAlive())
        .filter(thread -> !before.contains(thread))
        .collect(Collectors.toSet());
  }

  @Test
  void runsAgainAndAgain() {
    try (var session = Session.open(Programs.plan(SUM), Backend.HOST)) {
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
    try (var session = Session.open(Programs.plan(SUM), Backend.HOST)) {
      session.run();
      assertThat(liveThreads(before)).hasSize(4);
    }
    assertThat(liveThreads(before)).isEmpty();
  }

  @Test
  void usesTheCallersMemory() {
    var type = TensorType.contiguous(DType.F32, 8, 4);
    try (var arena = Arena.ofShared();
        var session = Session.open(external(SUM), Backend.HOST)) {
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
  void refusesMemoryThatDoesNotFit() {
    try (var confined = Arena.ofConfined();
        var session = Session.open(external(SUM), Backend.HOST)) {
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
    try (var session = Session.open(Programs.plan(SUM), Backend.HOST)) {
      assertThatThrownBy(
              () ->
                  session.bindOutput(
                      0, 0, HostTensor.allocate(TensorType.contiguous(DType.F32, 8, 4))))
          .hasMessageContaining("planned");
      assertThatThrownBy(() -> session.input(0, "y")).hasMessageContaining("inputs: [x]");
    }
  }

  @Test
  void showsMemoryThatNobodyWrote() {
    try (var session = Session.open(Programs.plan(SUM), Backend.HOST)) {
      session.run();
      assertThat(session.output(3, 0).orElseThrow().get(0, 0)).isNaN();
    }
  }

  @Test
  void reportsOneErrorWhenAKernelFails() {
    var calls = new AtomicInteger();
    HostKernel kernel =
        call -> {
          call.result().copyFrom(call.tensor("input"));
          if (calls.incrementAndGet() == 3) {
            throw new IllegalArgumentException("index 9 is out of range");
          }
        };
    var before = liveThreads(Set.of());
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session = Session.open(Programs.plan(CUSTOM), Backend.HOST)) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageMatching(
              "rank \\d, test_session::step 'h' \\(test.graph:5\\): index 9 is out of range");
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageStartingWith("the session ended when a run failed: rank ");
    }
    assertThat(liveThreads(before)).isEmpty();
  }

  @Test
  void reportsErrorsOfTheMachineToo() {
    HostKernel kernel =
        call -> {
          throw new UnsatisfiedLinkError("no blas");
        };
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session = Session.open(Programs.plan(CUSTOM), Backend.HOST)) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("test_session::step 'h' (test.graph:5): no blas");
    }
  }

  @Test
  void givesUpWhenARankDoesNotArrive() {
    var calls = new AtomicInteger();
    HostKernel kernel =
        call -> {
          call.result().copyFrom(call.tensor("input"));
          if (calls.incrementAndGet() == 1) {
            sleep();
          }
        };
    var before = liveThreads(Set.of());
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session =
            Session.open(Programs.plan(CUSTOM), new HostBackend(Duration.ofMillis(300)))) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageMatching(
              // Who runs out of patience first depends on the machine's load.
              "rank \\d, all_reduce \\w+ 'r' \\(test.graph:6\\): waited more than 300 ms for"
                  + " rank \\d, which is at test_session::step 'h' \\(test.graph:5\\)"
                  + "|rank \\d, test_session::step 'h' \\(test.graph:5\\):"
                  + " not finished after more than 300 ms");
    }
    assertThat(liveThreads(before)).isEmpty();
  }

  @Test
  void givesUpWhenNobodyGetsOn() {
    HostKernel kernel = call -> sleep();
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session =
            Session.open(Programs.plan(CUSTOM), new HostBackend(Duration.ofMillis(200)))) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("rank 0, test_session::step 'h' (test.graph:5) and rank 1")
          .hasMessageContaining("not finished after more than 200 ms");
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(Duration.ofMinutes(1));
    } catch (InterruptedException e) {
      throw new IllegalStateException("interrupted", e);
    }
  }

  @Test
  void leavesAThreadBehindThatDoesNotStop() {
    HostKernel kernel =
        call -> {
          long end = System.nanoTime() + Duration.ofSeconds(4).toNanos();
          while (System.nanoTime() < end) {
            Thread.onSpinWait();
          }
          // The memory must still be there: this would end the process otherwise.
          call.result().copyFrom(call.tensor("input"));
        };
    long start = System.nanoTime();
    try (var _ = HostKernels.register("test_session::step", kernel)) {
      var session =
          Session.open(
              Programs.plan(CUSTOM.replace("[0, 1, 2, 3]", "[0]")),
              new HostBackend(Duration.ofMillis(100)));
      assertThatThrownBy(session::run).hasMessageContaining("not finished");
      session.close();
    }
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(4));
  }

  @Test
  void endsTheRunOfAnInterruptedCaller() {
    HostKernel kernel = call -> sleep();
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session = Session.open(Programs.plan(CUSTOM), Backend.HOST)) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("interrupted");
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void isClosedOnce() {
    var session = Session.open(Programs.plan(SUM), Backend.HOST);
    session.close();
    session.close();
    assertThatThrownBy(session::run).hasMessage("the session is closed");
    assertThatThrownBy(() -> session.output(0, 0)).hasMessage("the session is closed");
  }

  @Test
  void saysWhichOpCannotRun() {
    assertThatThrownBy(() -> Session.open(Programs.plan(CUSTOM), Backend.HOST))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("test_session::step has no host implementation: 'h' (test.graph:5)");
  }

  private static String uneven(String splits0, int from0, String splits1, int from1, int rows) {
    return """
    group g = [0, 1]
    graph parts(x: f32[4, 2]) ranks [0] {
      r = _c10d_functional::all_to_all_single(x, %s, "g")
      o = _c10d_functional::wait_tensor(r)
      p = aten::slice.Tensor(o, 0, %d, %d)
      return p
    }
    graph parts(x: f32[4, 2]) ranks [1] {
      r = _c10d_functional::all_to_all_single(x, %s, "g")
      o = _c10d_functional::wait_tensor(r)
      p = aten::slice.Tensor(o, 0, %d, %d)
      return p
    }
    """
        .formatted(splits0, from0, from0 + rows, splits1, from1, from1 + rows);
  }

  private static void checkExchange(
      String text, CompileOptions options, double[] received0, double[] received1) {
    try (var session = Session.open(Programs.plan(text, options), Backend.HOST)) {
      for (int rank = 0; rank < 2; rank++) {
        var input = session.input(rank, "x");
        for (int row = 0; row < input.type().size(0); row++) {
          input.set(10 * rank + row, row, 0);
          input.set(-1, row, 1);
        }
      }
      session.run();
      assertThat(column(session, 0)).as(options.toString()).containsExactly(received0);
      assertThat(column(session, 1)).as(options.toString()).containsExactly(received1);
    }
  }

  @Test
  void exchangesUnevenParts() {
    // As PyTorch has it: the rows received from each rank, then those sent to each.
    var sameSize = uneven("[1, 3], [1, 3]", 0, "[3, 1], [3, 1]", 0, 4);
    for (var variant :
        new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE}) {
      for (var space : new MemorySpace[] {MemorySpace.EXTERNAL, MemorySpace.ANY}) {
        checkExchange(
            sameSize,
            CompileOptions.DEFAULT
                .withInputs(space)
                .withOutputs(space)
                .withVariants(ImmutableMap.of("r", variant)),
            new double[] {0, 10, 11, 12},
            new double[] {1, 2, 3, 13});
      }
    }
    for (var variant :
        new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE}) {
      var options = CompileOptions.DEFAULT.withVariants(ImmutableMap.of("r", variant));
      checkExchange(
          uneven("[3, 2], [3, 1]", 2, "[1, 2], [2, 2]", 0, 3),
          options,
          new double[] {2, 10, 11},
          new double[] {3, 12, 13});
      checkExchange(
          uneven("[0, 3], [0, 4]", 0, "[4, 1], [3, 1]", 2, 3),
          options,
          new double[] {10, 11, 12},
          new double[] {2, 3, 13});
    }
  }

  @Test
  void exchangesTensorsOfOtherSizesOnEachRank() {
    var text =
        """
        group g = [0, 1]
        graph parts(x: f32[4, 2]) ranks [0] {
          r = _c10d_functional::all_to_all_single(x, [1, 2], [1, 3], "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        graph parts(x: f32[2, 2]) ranks [1] {
          r = _c10d_functional::all_to_all_single(x, [3, 0], [2, 0], "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    for (var variant :
        new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE}) {
      for (var space : MemorySpace.values()) {
        checkExchange(
            text,
            CompileOptions.DEFAULT
                .withInputs(space)
                .withOutputs(space)
                .withVariants(ImmutableMap.of("r", variant)),
            new double[] {0, 10, 11},
            new double[] {1, 2, 3});
      }
    }
  }

  @Test
  void stridesAnewFromTheStartOfTheStorage() {
    var text =
        """
        graph strided(x: f32[6, 1]) {
          s = aten::slice.Tensor(x, 0, 3, 6)
          a = aten::as_strided(s, [2, 1], [2, 1], 1)
          b = aten::as_strided(s, [2, 1], [2, 1])
          return a, b
        }
        """;
    try (var session = Session.open(Programs.plan(text), Backend.HOST)) {
      for (int row = 0; row < 6; row++) {
        session.input(0, "x").set(row, row, 0);
      }
      session.run();
      assertThat(column(session, 0)).containsExactly(1, 3);
      assertThat(session.output(0, 1).orElseThrow().get(1, 0)).isEqualTo(5);
    }
  }

  @Test
  void refusesPartsThatDoNotFit() {
    assertThatThrownBy(() -> Programs.plan(uneven("[1, 3], [1, 3]", 0, "[2, 2], [3, 1]", 0, 4)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("ranks-disagree")
        .hasMessageContaining("rank 1 takes 2 rows from rank 0, which sends it 3");
  }

  private static double[] column(Session session, int rank) {
    var output = session.output(rank, 0).orElseThrow();
    var column = new double[(int) output.type().size(0)];
    for (int row = 0; row < column.length; row++) {
      column[row] = output.get(row, 0);
    }
    return column;
  }

  @Test
  void movesSeveralTensorsAtOnce() {
    var text =
        """
        group g = [0, 1, 2]
        graph several(x: f32[5], y: bf16[7, 3]) {
          a, b = _c10d_functional::all_reduce_coalesced([x, y], "sum", "g")
          p = _c10d_functional::wait_tensor(a)
          q = _c10d_functional::wait_tensor(b)
          return p, q
        }
        """;
    for (var variant : new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.TWO_SHOT}) {
      var plan =
          Programs.plan(text, CompileOptions.DEFAULT.withVariants(ImmutableMap.of("a", variant)));
      try (var session = Session.open(plan, Backend.HOST)) {
        for (int rank = 0; rank < 3; rank++) {
          for (int i = 0; i < 5; i++) {
            session.input(rank, "x").set(rank + 0.5 * i, i);
          }
          for (int i = 0; i < 7; i++) {
            for (int j = 0; j < 3; j++) {
              session.input(rank, "y").set(rank * i + j, i, j);
            }
          }
        }
        session.run();
        for (int rank = 0; rank < 3; rank++) {
          assertThat(session.output(rank, 0).orElseThrow().get(4))
              .as(variant.text())
              .isEqualTo(3 + 1.5 * 4);
          assertThat(session.output(rank, 1).orElseThrow().get(6, 2))
              .as(variant.text())
              .isEqualTo(3 * 6 + 3 * 2);
        }
      }
    }
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
        var session = Session.open(Programs.plan(text), Backend.HOST)) {
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

  /** Peers read each other's operands, which must be where the plan says. */
  private static Plan pulled() {
    return Programs.plan(
        SUM, CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.ONE_SHOT)));
  }

  /** The executable with one collective of one rank changed. */
  private static Executable changed(int rank, UnaryOperator<Collective> change) {
    var executable = Lowering.lower(pulled());
    var ranks = ImmutableList.<RankProgram>builder();
    for (var program : executable.ranks()) {
      ranks.add(
          program.rank() != rank
              ? program
              : new RankProgram(
                  rank,
                  program.localBytes(),
                  program.inputs(),
                  program.inputNames(),
                  program.outputs(),
                  program.instructions().stream()
                      .map(i -> i instanceof Collective c ? change.apply(c) : i)
                      .collect(ImmutableList.toImmutableList()),
                  program.events()));
    }
    return new Executable(
        executable.name(), executable.symmetricBytes(), executable.digest(), ranks.build());
  }

  private static Collective moved(Collective c, Variant variant, TensorRef operand) {
    return new Collective(
        c.stream(),
        c.kind(),
        variant,
        c.group(),
        c.reduceOp(),
        c.root(),
        c.sendRows(),
        c.receiveRows(),
        ImmutableList.of(operand),
        c.results(),
        c.startBarrier(),
        c.endBarrier(),
        c.workspace(),
        c.name(),
        c.span());
  }

  @Test
  void namesTheFirstDifferenceBetweenRanks() {
    var other =
        changed(
            2,
            c -> {
              var operand = c.operands().getFirst();
              return moved(
                  c,
                  c.variant(),
                  new TensorRef(operand.arena(), 0, operand.offset() + 64, operand.type()));
            });
    assertThatThrownBy(() -> Backend.HOST.open(other))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("ranks 0 and 2 do not have the same plan")
        .hasMessageContaining("symm+0x0")
        .hasMessageContaining("symm+0x40")
        .hasMessageContaining("'r' (test.graph:5)");
  }

  @Test
  void keepsPeersOutOfLocalMemory() {
    UnaryOperator<Collective> local =
        c ->
            moved(
                c,
                c.variant(),
                new TensorRef(
                    dev.symplan.planner.Arena.EXTERNAL_INPUT,
                    0,
                    0,
                    c.operands().getFirst().type()));
    try (var session = Backend.HOST.open(everywhere(local))) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("it is not in symmetric memory");
    }
  }

  private static Executable everywhere(UnaryOperator<Collective> change) {
    var executable = Lowering.lower(pulled());
    return new Executable(
        executable.name(),
        executable.symmetricBytes(),
        executable.digest(),
        executable.ranks().stream()
            .map(program -> changed(program.rank(), change).ranks().get(program.rank()))
            .collect(ImmutableList.toImmutableList()));
  }
}
