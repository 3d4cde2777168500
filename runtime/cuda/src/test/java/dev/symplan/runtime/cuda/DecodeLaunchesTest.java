package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** One token of a Llama layer on two ranks, with keys and values of those before it. */
class DecodeLaunchesTest {
  private static final String NAME = "decode_layer.graph";

  private static String text() throws IOException {
    try (InputStream file = DecodeLaunchesTest.class.getResourceAsStream("/" + NAME)) {
      return new String(Objects.requireNonNull(file).readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  void aLayerHasFewLaunches() throws IOException {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(2))
            .compile(GraphParser.parse(new SourceFile(NAME, text())));
    for (var program : DeviceLowering.lower(Lowering.lower(plan))) {
      // A norm; q, k and v; keys and queries turned; what is kept; attention and its product; the
      // sum of that with the next norm; gate and up; down, and its sum.
      assertThat(program.steps().stream().map(DecodeLaunchesTest::describe))
          .containsExactly(
              "Copy", "va", "w", "kkr", "ki", "vi", "qqr", "Attention", "o", "ys", "gm", "d", "zs");
    }
  }

  private static String describe(DeviceStep step) {
    return step instanceof Launch launch ? launch.label() : step.getClass().getSimpleName();
  }
}
