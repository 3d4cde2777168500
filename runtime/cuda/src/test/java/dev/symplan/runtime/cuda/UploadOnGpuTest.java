package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.ArrayList;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Inputs of sizes around those at which uploads use other buffers. */
@Tag("gpu")
class UploadOnGpuTest {
  private static final String TEXT =
      """
      graph version 1
      graph copies(a: f32[2097151], b: f32[2097152], c: f32[8388608], d: f32[8388609], e: u8[210000001]) {
        p = aten::clone(a)
        q = aten::clone(b)
        r = aten::clone(c)
        s = aten::clone(d)
        t = aten::clone(e)
        return p, q, r, s, t
      }
      """;

  @Test
  void largeInputsArriveWhole() {
    Gpus.require(1);
    var plan =
        Compiler.forDefaultTarget().compile(GraphParser.parse(new SourceFile("test.graph", TEXT)));
    try (var session = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(30))) {
      for (int seed = 0; seed < 2; seed++) {
        var inputs = new ArrayList<HostTensor>();
        for (int i = 0; i < session.inputNames().size(); i++) {
          var input = session.input(0, i).orElseThrow();
          SeededInputs.fill(input, seed, 0, session.inputNames().get(i));
          inputs.add(input.copyAs(input.type()));
        }
        session.run();
        for (int i = 0; i < inputs.size(); i++) {
          long bytes = inputs.get(i).type().storageBytes();
          var output = session.output(0, i).orElseThrow();
          assertThat(
                  output
                      .memory()
                      .asSlice(0, bytes)
                      .mismatch(inputs.get(i).memory().asSlice(0, bytes)))
              .as("seed %s, input %s", seed, session.inputNames().get(i))
              .isEqualTo(-1);
        }
      }
    }
  }

  @Test
  void timedRunsLeaveWhatRunsDo() {
    Gpus.require(1);
    var text =
        """
        graph version 1
        graph count(n: i64[1]) {
          m = aten::add_.Scalar(n, 1)
          return m
        }
        """;
    var plan =
        Compiler.forDefaultTarget().compile(GraphParser.parse(new SourceFile("test.graph", text)));
    try (var session = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(30))) {
      session.input(0, "n").setLong(0, 0);
      // Before each measurement that counts, there is another one.
      session.time(2, 1);
      assertThat(session.input(0, "n").getLong(0)).isEqualTo(4);
      assertThat(session.output(0, 0).orElseThrow().getLong(0)).isEqualTo(4);
    }
  }

  @Test
  void timedRunsDiscardWhatGraphsHandOn() {
    Gpus.require(1);
    var text =
        """
        graph version 1
        graph first(x: f32[8]) {
          y = aten::exp(x)
          symplan::border("second", 1, 0)
          z = aten::neg(y)
          return z
        }
        """;
    var plan =
        Compiler.forDefaultTarget().compile(GraphParser.parse(new SourceFile("test.graph", text)));
    try (var session = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(30))) {
      session.run("first");
      session.time(1, 1);
      assertThatThrownBy(() -> session.run("second")).isInstanceOf(IllegalStateException.class);
      session.run("first");
      session.run("second");
    }
  }
}
