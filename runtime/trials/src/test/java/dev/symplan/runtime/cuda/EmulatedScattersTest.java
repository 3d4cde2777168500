package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Elementwise ops and the reduce_scatter behind them as one kernel, all ranks' threads at once in
 * an order that is drawn, give the bits of the host backend.
 */
class EmulatedScattersTest {
  private static final long MAX_TURNS = 400_000_000;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2 | f32[12, 64]  | y = aten::mul.Tensor(x, 1.5)                         | 0 |
          2 | f32[12, 64]  | y = aten::mul.Tensor(x, 1.5)                         | 1 |
          3 | f32[6, 48]   | y = aten::mul.Tensor(x, x)                           | 1 |
          4 | bf16[8, 64]  | y = aten::neg(x)                                     | 0 |
          4 | bf16[4, 4, 64] | y = aten::neg(x)                                   | 1 |
          3 | f16[6, 48]   | n = aten::neg(x)\\n  y = aten::mul.Tensor(n, x)      | 1 |
          2 | bf16[6, 64]  | y = aten::mul.Tensor(x, 3)                           | 1 | float32
          3 | f16[6, 96]   | y = aten::abs(x)                                     | 0 | float32
          2 | f32[2, 4096] | y = aten::add.Tensor(x, 1)                           | 1 |
          """)
  void oneKernelGivesTheBitsOfTheHost(int ranks, String type, String maker, int dim, String dtype) {
    var world =
        IntStream.range(0, ranks).mapToObj(String::valueOf).collect(Collectors.joining(", "));
    for (var reduction : new String[] {"sum", "avg", "max"}) {
      var text =
          """
          graph version 1
          group g = [%s]
          graph t(x: %s) {
            %s
            r = symplan::reduce_scatter_dim(y, "%s", %s, %s, "g"%s)
            return r
          }
          """
              .formatted(
                  world,
                  type,
                  maker.replace("\\n", "\n"),
                  reduction,
                  dim,
                  ranks,
                  dtype == null ? "" : ", dtype=torch." + dtype);
      var plan =
          Compiler.forTarget(Target.H200_X4)
              .with(
                  CompileOptions.DEFAULT.withVariants(
                      ImmutableMap.of("reduce_scatter", Variant.ONE_SHOT)))
              .compile(GraphParser.parse(new SourceFile("scatter.graph", text)));
      var executable = Lowering.lower(plan);
      for (var program : DeviceLowering.lower(executable)) {
        assertThat(program.steps()).as(text).hasSize(1);
        assertThat(((Launch) program.steps().getFirst()).shares()).hasSize(2);
      }
      var gpus = new EmulatedGpus(executable, 2, kernel -> kernel);
      try (var host = Session.open(plan, new HostBackend())) {
        for (long seed = 1; seed <= 3; seed++) {
          gpus.assertAsHost(host, executable, seed, MAX_TURNS, text);
        }
      }
    }
  }
}
