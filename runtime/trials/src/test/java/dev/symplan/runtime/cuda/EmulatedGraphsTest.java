package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.joint.JointGraph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** The kernels of a program's graphs, run one graph after the other. */
class EmulatedGraphsTest {
  private static final String FORWARD =
      """
      group g = [0, 1]
      graph forward(primals_1: f32[64, 8], primals_2: f32[64, 8]) {
        a = aten::relu(primals_1)
        sum = _c10d_functional::all_reduce(a, "sum", "g")
        done = _c10d_functional::wait_tensor(sum)
        b = aten::mul.Tensor(done, primals_2)
        y = aten::add.Tensor(b, a)
        return y, done, a
      }
      """;

  private static final String BACKWARD =
      """
      group g = [0, 1]
      graph backward(done: f32[64, 8], a: f32[64, 8], tangents_1: f32[64, 8]) {
        b = aten::mul.Tensor(tangents_1, done)
        c = aten::add.Tensor(b, a)
        s = _c10d_functional::all_reduce(c, "sum", "g")
        grad = _c10d_functional::wait_tensor(s)
        d = aten::neg(grad)
        return d
      }
      """;

  private static Plan plan() {
    var programs =
        List.of(FORWARD, BACKWARD).stream()
            .map(text -> GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text)))
            .toList();
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(2))
        .compile(JointGraph.of(programs, Optional.empty(), _ -> {}));
  }

  private static void fill(Session session) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.inputNames().size(); i++) {
        SeededInputs.fill(
            session.input(rank, i).orElseThrow(), 0, rank, session.inputNames().get(i));
      }
    }
  }

  /** No launch is of two graphs, and each graph has all of its own. */
  @Test
  void launchesAreOfOneGraph() {
    for (var program : DeviceLowering.lower(Lowering.lower(plan()))) {
      assertThat(program.begins().length()).isEqualTo(2);
      assertThat(program.steps(0)).isNotEmpty();
      assertThat(program.steps(1)).isNotEmpty();
      assertThat(ImmutableList.builder().addAll(program.steps(0)).addAll(program.steps(1)).build())
          .isEqualTo(program.steps());
    }
  }

  @Test
  void graphsOneByOneGiveWhatAllGive() {
    var plan = plan();
    try (var host = Session.open(plan, new HostBackend());
        var emulated = EmulatedSession.open(List.of(Lowering.lower(plan))).getFirst()) {
      fill(host);
      host.run();
      for (int run = 0; run < 2; run++) {
        fill(emulated);
        for (var graph : emulated.graphs()) {
          emulated.run(graph.name());
        }
        for (int rank = 0; rank < 2; rank++) {
          for (int output = 0; output < 2; output++) {
            var found = emulated.output(rank, output).orElseThrow();
            var wanted = host.output(rank, output).orElseThrow();
            long bytes = wanted.type().bytes();
            assertThat(found.memory().asSlice(0, bytes).mismatch(wanted.memory().asSlice(0, bytes)))
                .as("rank %s, output %s", rank, output)
                .isEqualTo(-1);
          }
        }
      }
    }
  }
}
