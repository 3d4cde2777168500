package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.Random;

/** Small programs for tests of sessions. */
final class Programs {
  private static final int CHUNK = 4096;

  private Programs() {}

  static Plan plan(String text) {
    return plan(text, CompileOptions.DEFAULT);
  }

  static Plan plan(String text, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("test.graph", "graph version 1\n" + text)));
  }

  /** Fills every float input with numbers of its own. */
  static void fillInputs(Session session, Random random) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        session.input(rank, i).ifPresent(tensor -> fill(tensor, random));
      }
    }
  }

  private static void fill(HostTensor tensor, Random random) {
    var flat = flat(tensor);
    long elements = flat.type().numel();
    int item = flat.dtype().bytes();
    var values = new double[(int) Math.min(elements, CHUNK)];
    for (long from = 0; from < elements; from += values.length) {
      int count = (int) Math.min(values.length, elements - from);
      for (int i = 0; i < count; i++) {
        values[i] = (random.nextInt(2000) - 1000) / 64.0;
      }
      Elements.store(values, count, flat.memory(), from * item, item, flat.dtype());
    }
  }

  /** {@return the elements as they lie in memory, those of complex numbers by their parts} */
  static HostTensor flat(HostTensor tensor) {
    var dtype = tensor.dtype().real();
    long elements = tensor.type().storageBytes() / dtype.bytes();
    return tensor.as(TensorType.contiguous(dtype, elements));
  }

  static HostTensor copy(HostTensor tensor) {
    return tensor.copyAs(tensor.type().contiguous());
  }

  /** {@return whether two tensors of one type have the same bytes} */
  static boolean same(HostTensor a, HostTensor b) {
    var left = a.contiguous();
    var right = b.contiguous();
    long bytes = left.type().bytes();
    return left.type().sizes().equals(right.type().sizes())
        && left.memory().asSlice(0, bytes).mismatch(right.memory().asSlice(0, bytes)) < 0;
  }

  /**
   * Runs a session with its inputs, and compares the outputs of all ranks, to the bit, with an
   * evaluation of the graphs without a plan.
   *
   * @param graphs by rank
   * @param what the test, for the message of a failure
   */
  static void runsAsReference(Session session, List<Graph> graphs, Plan plan, String what) {
    var expected = Reference.evaluate(graphs, plan.groups(), session::input);
    session.run();
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.outputCount(rank); i++) {
        assertThat(
                same(
                    session.output(rank, i).orElseThrow(),
                    expected.outputs().get(rank).get(i).orElseThrow()))
            .as("rank %s, output %s, %s", rank, i, what)
            .isTrue();
      }
    }
  }

  /** Fills all inputs with powers of two, whose sums, averages and products are exact. */
  static void fillExactly(Session session, Random random) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        session.input(rank, i).ifPresent(tensor -> fillExactly(tensor, random));
      }
    }
  }

  private static void fillExactly(HostTensor tensor, Random random) {
    var flat = Programs.flat(tensor);
    for (long i = 0; i < flat.type().numel(); i++) {
      flat.set(1 + random.nextInt(2), i);
    }
  }
}
