package dev.symplan.samples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import dev.symplan.runtime.tensor.TensorDiff;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class SamplesTest {
  private static final Path SAMPLES =
      Path.of(System.getProperty("symplan.root", "..")).resolve("samples");

  static List<Path> graphs() throws IOException {
    try (var files = Files.list(SAMPLES)) {
      return files.filter(f -> f.toString().endsWith(".graph")).sorted().toList();
    }
  }

  @ParameterizedTest
  @MethodSource("graphs")
  void printsAsItWasRead(Path graph) {
    var file = SourceReader.read(graph);
    assertThat(GraphPrinter.print(GraphParser.parse(file))).isEqualTo(file.text());
  }

  @ParameterizedTest
  @MethodSource("graphs")
  void plansToTheSameBytes(Path graph) {
    var first = PlanFile.toJson(Compiler.forDefaultTarget().compile(graph));
    var second = PlanFile.toJson(Compiler.forDefaultTarget().compile(graph));
    assertThat(second).isEqualTo(first);
  }

  /** Leaves out the graph whose op only {@link CustomOp} implements; it has its own test. */
  static Stream<Arguments> graphsOfBuiltInOps() throws IOException {
    return graphs().stream()
        .filter(graph -> !graph.endsWith("custom_op.graph"))
        .flatMap(
            graph -> Stream.of(Objective.values()).map(objective -> arguments(graph, objective)));
  }

  @ParameterizedTest
  @MethodSource("graphsOfBuiltInOps")
  void runsAsWithoutAPlan(Path graph, Objective objective) {
    var options = CompileOptions.DEFAULT.withObjective(objective);
    var compiler = Compiler.forDefaultTarget().with(options);
    var plan = compiler.compile(graph);
    var graphs = compiler.graphs(ProgramReader.read(graph, options, _ -> {}), plan);
    assertThat(Reference.canEvaluate(graphs)).isTrue();
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < session.ranks(); rank++) {
        for (int i = 0; i < session.inputNames().size(); i++) {
          SeededInputs.fill(session.input(rank, i).orElseThrow(), 7, rank, "in" + i);
        }
      }
      var expected = Reference.evaluate(graphs, plan.groups(), session::input).outputs();
      session.run();
      for (int rank = 0; rank < session.ranks(); rank++) {
        assertThat(session.outputCount()).isPositive();
        for (int i = 0; i < session.outputCount(); i++) {
          var actual = session.output(rank, i).orElseThrow();
          var diff = TensorDiff.between(actual, expected.get(rank).get(i).orElseThrow());
          assertThat(diff.unequal()).as("rank %s output %s", rank, i).isZero();
        }
      }
    }
  }

  @Test
  void quickStartGivesANumber() {
    assertThat(QuickStart.run(SAMPLES.resolve("tp_mlp.graph"))).isFinite().isNotZero();
  }

  @Test
  void customOpAddsTheNextRanksProduct() {
    var output = CustomOp.run(SAMPLES.resolve("custom_op.graph"), new HostBackend());
    double expected = product(0) + product(1);
    assertThat(output.get(3, 5)).isCloseTo(expected, offset(1e-5));
  }

  /** {@return element [3, 5] of a rank's x times w} */
  private static double product(int rank) {
    var x = made(rank, 0, 16, 64);
    var w = made(rank, 1, 64, 64);
    double sum = 0;
    for (int k = 0; k < 64; k++) {
      sum += x.get(3, k) * w.get(k, 5);
    }
    return sum;
  }

  private static HostTensor made(int rank, int index, long rows, long columns) {
    var tensor = HostTensor.allocate(TensorType.contiguous(DType.F32, rows, columns));
    SeededInputs.fill(tensor, 0, rank, "input" + index);
    return tensor;
  }
}
