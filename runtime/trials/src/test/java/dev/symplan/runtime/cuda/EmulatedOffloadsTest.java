package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.testkit.SavedTensors;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import java.util.OptionalLong;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Training steps in the least memory, whose tensors move to pinned memory and back on a stream of
 * their own, give the bits of the host backend, and those of the plan in which none moves.
 */
@Tag("random")
class EmulatedOffloadsTest {
  private static final long MAX_TURNS = 400_000_000;

  @Test
  void tensorsComeBackAsTheyWere() {
    int moved = 0;
    for (long seed = 0; seed < 6; seed++) {
      var text = SavedTensors.elementwise(new Random(seed), 2);
      var program = GraphParser.parse(new SourceFile("step.graph", text));
      var compiler = Compiler.forTarget(Target.H200_X4);
      var least =
          LeastMemory.of(
              bytes ->
                  compiler
                      .with(CompileOptions.DEFAULT.withMemoryLimit(OptionalLong.of(bytes)))
                      .compile(program));
      var plan = compiler.with(CompileOptions.DEFAULT.withMemoryLimit(least)).compile(program);
      var executable = Lowering.lower(plan);
      for (var device : DeviceLowering.lower(executable)) {
        for (var step : device.steps()) {
          if (step instanceof Copy copy
              && (copy.from().arena() == ArenaKind.HOST || copy.to().arena() == ArenaKind.HOST)) {
            assertThat(copy.stream()).isEqualTo(StreamKind.COPY);
            moved++;
          }
        }
      }
      assertAsHost(plan, executable, seed, text);
    }
    assertThat(moved).isPositive();
  }

  /** Inputs and outputs are in the host's memory, too. */
  @Test
  void tensorsMoveWhereTheGraphSaysSo() {
    for (long seed = 0; seed < 3; seed++) {
      var text = SavedTensors.moved(new Random(seed), 2);
      var plan =
          Compiler.forTarget(Target.H200_X4)
              .compile(GraphParser.parse(new SourceFile("step.graph", text)));
      assertThat(plan.forRank(0).hostBytes()).isPositive();
      assertAsHost(plan, Lowering.lower(plan), seed, text);
    }
  }

  private static void assertAsHost(Plan plan, Executable executable, long seed, String text) {
    var gpus = new EmulatedGpus(executable, 2, kernel -> kernel);
    try (var host = Session.open(plan, new HostBackend())) {
      gpus.assertAsHost(host, executable, seed, MAX_TURNS, text);
    }
  }
}
