package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.joint.JointGraph;
import dev.symplan.ir.joint.Tie;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Sessions run the graphs of a program one by one. */
class ProgramSessionTest {
  private static final String FORWARD =
      """
      group g = [0, 1]
      graph forward(primals_1: f32[4], primals_2: f32[4]) {
        sum = _c10d_functional::all_reduce(primals_1, "sum", "g")
        done = _c10d_functional::wait_tensor(sum)
        y = aten::mul.Tensor(done, primals_2)
        return y, done
      }
      """;

  private static final String BACKWARD =
      """
      group g = [0, 1]
      graph backward(done: f32[4], tangents_1: f32[4]) {
        d = aten::mul.Tensor(tangents_1, done)
        s = _c10d_functional::all_reduce(d, "sum", "g")
        grad = _c10d_functional::wait_tensor(s)
        return grad
      }
      """;

  private static final String PREFILL =
      """
      graph prefill(weight: f32[4], cache: f32[4], x: f32[4]) {
        y = aten::mul.Tensor(x, weight)
        wide = aten::cat([y, y, y, y])
        total = aten::sum(wide)
        kept = aten::copy_(cache, y)
        return total
      }
      """;

  private static final String DECODE =
      """
      graph decode(weight: f32[4], cache: f32[4], token: f32[4]) {
        y = aten::mul.Tensor(token, weight)
        z = aten::add.Tensor(cache, y)
        kept = aten::copy_(cache, z)
        r = aten::neg(z)
        return r
      }
      """;

  private static final ImmutableList<Tie> SHARED =
      ImmutableList.of(
          new Tie(0, "weight", 1, "weight", false, false, Span.NONE),
          new Tie(0, "cache", 1, "cache", false, false, Span.NONE));

  private static Program program(Optional<ImmutableList<Tie>> ties, String... texts) {
    return JointGraph.of(
        Stream.of(texts)
            .map(text -> GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text)))
            .toList(),
        ties,
        _ -> {});
  }

  private static Plan plan(CompileOptions options, Program program) {
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }

  private static Plan training(CompileOptions options) {
    return plan(options.withRanks(2), program(Optional.empty(), FORWARD, BACKWARD));
  }

  private static Session open(Plan plan) {
    return Session.open(plan, new HostBackend());
  }

  private static void fill(Session session, String name, double number) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      var tensor = session.input(rank, name);
      for (int i = 0; i < 4; i++) {
        tensor.set(number + i, i);
      }
    }
  }

  private static double first(Session session, int output) {
    HostTensor tensor = session.output(0, output).orElseThrow();
    return tensor.type().rank() == 0 ? tensor.get() : tensor.get(0);
  }

  @Test
  void backwardTakesWhatForwardKeptAndWhatTheCallerMakesBetween() {
    try (var session = open(training(CompileOptions.DEFAULT))) {
      assertThat(session.graphs())
          .extracting(graph -> graph.name())
          .containsExactly("forward", "backward");
      for (int step = 1; step <= 3; step++) {
        fill(session, "primals_1", step);
        fill(session, "primals_2", 10);
        session.run("forward");
        assertThat(first(session, 0)).isEqualTo(2 * step * 10);
        fill(session, "tangents_1", first(session, 0));
        session.run("backward");
        assertThat(first(session, 1)).isEqualTo(2 * (2 * step * 10) * (2 * step));
        assertThat(first(session, 0)).isEqualTo(2 * step * 10);
      }
    }
  }

  @Test
  void graphsRunInTheirOrder() {
    try (var session = open(training(CompileOptions.DEFAULT))) {
      assertThatThrownBy(() -> session.run("backward"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("graph 'backward' needs results of graph 'forward': run that graph first");
      assertThatThrownBy(() -> session.run("sideways"))
          .hasMessage("no graph has the name 'sideways'; graphs: [forward, backward]");
      session.run("forward");
      assertThatThrownBy(() -> session.run("forward"))
          .hasMessage(
              "graph 'backward' comes next, not 'forward'; restart() discards the results that it"
                  + " would take");
      session.restart();
      fill(session, "primals_1", 1);
      fill(session, "primals_2", 1);
      session.run("forward");
      assertThat(first(session, 0)).isEqualTo(2);
      session.run();
      session.run("forward");
    }
  }

  @Test
  void memoryThatWasGivenAwayIsNotFilledInBetween() {
    var donated =
        CompileOptions.DEFAULT.withSpaces(
            ImmutableMap.of("primals_2", MemorySpace.DONATED, "tangents_1", MemorySpace.DONATED));
    try (var session = open(training(donated))) {
      fill(session, "primals_1", 1);
      fill(session, "primals_2", 1);
      session.run("forward");
      assertThatThrownBy(() -> session.input(0, "primals_2"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("'primals_2' was donated, so graph 'backward' may use");
      fill(session, "tangents_1", 3);
      session.run("backward");
      assertThat(first(session, 1)).isEqualTo(12);
      fill(session, "primals_2", 1);
    }
  }

  /** The two graphs behind it have its memory while one hands something to the other. */
  @Test
  void memoryThatAnEarlierGraphWasGivenIsNotFilledInBetween() {
    var text =
        """
        graph f(x: f32[4] @donated, u: f32[4]) {
          y = aten::exp(x)
          symplan::border("g", 2, 1)
          a = aten::neg(u)
          symplan::border("h", 2, 1)
          b = aten::mul.Tensor(a, u)
          return y, b
        }
        """;
    try (var session = open(Programs.plan(text))) {
      fill(session, "u", 2);
      session.run("g");
      assertThatThrownBy(() -> fill(session, "x", 0))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("'x' was donated, so graph 'h' may use its memory");
      session.run("h");
      assertThat(first(session, 1)).isEqualTo(-4);
      fill(session, "x", 0);
      session.run("f");
      assertThat(first(session, 0)).isEqualTo(1);
    }
  }

  @Test
  void ranksThatDoNotExistAreRefused() {
    try (var session = open(training(CompileOptions.DEFAULT))) {
      List.<ThrowingCallable>of(
              () -> session.input(99, 0),
              () -> session.input(-1, "x"),
              () -> session.inputNames(99),
              () -> session.output(99, 0),
              () -> session.outputCount(99),
              () -> session.isExternalInput(99, 0),
              () -> session.mayWriteInput(99, 0),
              () -> session.signature(99))
          .forEach(
              call ->
                  assertThatThrownBy(call)
                      .isInstanceOf(IllegalArgumentException.class)
                      .hasMessageEndingWith(" does not exist; there are 2 ranks"));
    }
  }

  @Test
  void nothingIsBoundInBetween() {
    var external = CompileOptions.DEFAULT.withOutputs(MemorySpace.EXTERNAL);
    try (var session = open(training(external.withInputs(MemorySpace.EXTERNAL)))) {
      var memory = HostTensor.allocate(session.output(0, 1).orElseThrow().type());
      session.run("forward");
      assertThatThrownBy(() -> session.bindOutput(0, 1, memory))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("output 1 of rank 0 can only be bound before graph 'forward' runs");
      assertThatThrownBy(() -> session.bindInput(0, 0, memory))
          .hasMessageContaining("input 'primals_1' of rank 0 can only be bound before");
      session.bindInput(0, 2, memory);
      session.run("backward");
      session.bindOutput(0, 1, memory);
    }
  }

  @Test
  void graphsThatShareOnlyInputsRunAgainAndAgain() {
    var program = program(Optional.of(SHARED), PREFILL, DECODE);
    try (var session = open(plan(CompileOptions.DEFAULT.withRanks(1), program))) {
      fill(session, "weight", 2);
      fill(session, "x", 5);
      session.run("prefill");
      // 2·5 + 3·6 + 4·7 + 5·8, four times.
      assertThat(first(session, 0)).isEqualTo(4 * 96);
      double expected = 10;
      for (int token = 1; token <= 3; token++) {
        fill(session, "token", token);
        session.run("decode");
        expected += 2 * token;
        assertThat(first(session, 1)).isEqualTo(-expected);
      }
      fill(session, "x", 1);
      session.run("prefill");
      fill(session, "token", 1);
      session.run("decode");
      assertThat(first(session, 1)).isEqualTo(-4);
    }
  }

  @Test
  void aGraphThatTakesNothingFromOthersRunsManyTimesAtOnce() {
    var program = program(Optional.of(SHARED), PREFILL, DECODE);
    try (var session = open(plan(CompileOptions.DEFAULT.withRanks(1), program))) {
      fill(session, "weight", 2);
      fill(session, "x", 5);
      fill(session, "token", 3);
      session.run("prefill");
      session.run("decode", 4);
      session.run("decode", 1);
      // The cache holds 10, and each run adds 2·3.
      assertThat(first(session, 1)).isEqualTo(-40);
      assertThatThrownBy(() -> session.run("decode", 0))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("0 runs");
    }
    try (var session = open(training(CompileOptions.DEFAULT))) {
      assertThatThrownBy(() -> session.run("forward", 2))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(
              "graph 'forward' cannot run 2 times at once: it hands results on, or takes those of"
                  + " another");
    }
  }

  @Test
  void graphsThatShareOnlyInputsUseTheSameMemory() {
    var options = CompileOptions.DEFAULT.withRanks(1).withOutputs(MemorySpace.EXTERNAL);
    long together = plan(options, program(Optional.of(SHARED), PREFILL, DECODE)).total().bytes();
    long prefill = alone(options, PREFILL);
    long decode = alone(options, DECODE);
    assertThat(together).isEqualTo(Math.max(prefill, decode)).isLessThan(prefill + decode);
  }

  private static long alone(CompileOptions options, String text) {
    var program = GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text));
    return plan(options, program).total().bytes();
  }

  @Test
  void plansAcrossGraphsRunAsAWhole() {
    try (var session = open(training(CompileOptions.DEFAULT.withAcrossGraphs(true)))) {
      assertThat(session.graphs()).hasSize(1);
      fill(session, "primals_1", 1);
      fill(session, "primals_2", 1);
      fill(session, "tangents_1", 1);
      session.run();
      assertThat(first(session, 1)).isEqualTo(4);
    }
  }

  @Test
  void anOutputThatALaterGraphWritesIsRefused() {
    var first = "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n";
    var second = "graph b(y: f32[4], z: f32[4]) {\n  w = aten::copy_(y, z)\n  return w\n}\n";
    var ties = ImmutableList.of(new Tie(0, "y", 1, "y", true, false, Span.NONE));
    var options = CompileOptions.DEFAULT.withRanks(1);
    assertThatThrownBy(() -> plan(options, program(Optional.of(ties), first, second)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("graph 'b' writes into 'y', which graph 'a' gives")
        .hasMessageContaining("--across-graphs");
    assertThat(
            plan(options.withAcrossGraphs(true), program(Optional.of(ties), first, second))
                .rankPlans())
        .hasSize(1);
  }
}
