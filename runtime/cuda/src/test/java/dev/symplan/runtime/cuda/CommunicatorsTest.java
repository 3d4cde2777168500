package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.StreamKind;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class CommunicatorsTest {

  /** Half of the ranks have products beside which the collective runs, the others have none. */
  private static final String TEXT =
      """
      graph version 1
      group g = [0, 1, 2, 3]
      graph t(x: bf16[4096, 4096], a: bf16[4096, 4096]) ranks [0, 1] {
        s = _c10d_functional::all_reduce(x, "sum", "g")
        w = _c10d_functional::wait_tensor(s)
        m = aten::mm(a, a)
        n = aten::mm(m, a)
        r = aten::add.Tensor(w, n)
        return r
      }
      graph t(x: bf16[4096, 4096], a: bf16[4096, 4096]) ranks [2, 3] {
        s = _c10d_functional::all_reduce(x, "sum", "g")
        w = _c10d_functional::wait_tensor(s)
        r = aten::add.Tensor(w, a)
        return r
      }
      """;

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"NCCL", "NCCL_SYMM"})
  void ranksAreInOneWhateverTheirStreams(Variant variant) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", variant)))
            .compile(GraphParser.parse(new SourceFile("apart.graph", TEXT)));
    var calls =
        DeviceLowering.lower(Lowering.lower(plan)).stream()
            .flatMap(program -> program.steps().stream())
            .filter(DeviceStep.Nccl.class::isInstance)
            .map(DeviceStep.Nccl.class::cast)
            .toList();
    assertThat(calls)
        .extracting(DeviceStep.Nccl::stream)
        .containsExactly(StreamKind.COMM, StreamKind.COMM, StreamKind.COMPUTE, StreamKind.COMPUTE);
    assertThat(calls)
        .extracting(Communicators.Key::of)
        .containsOnly(Communicators.Key.of(calls.getFirst()));
  }
}
