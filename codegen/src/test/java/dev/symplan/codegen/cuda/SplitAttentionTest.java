package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How many blocks share the keys of few rows, and when cuDNN gets them. */
class SplitAttentionTest {

  private static ImmutableList<DeviceStep> steps(
      String dtype, int heads, int groups, int rows, int keys, String more) {
    var text =
        """
        graph version 1
        graph t(q: %1$s[1, %2$s, %4$s, 128], k: %1$s[1, %3$s, %5$s, 128]) {
          o = aten::scaled_dot_product_attention(q, k, k, enable_gqa=True%6$s)
          return o
        }
        """
            .formatted(dtype, heads, groups, rows, keys, more);
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(1))
            .compile(GraphParser.parse(new SourceFile("t.graph", text)));
    return DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps();
  }

  private static List<Integer> blocks(List<DeviceStep> steps) {
    return steps.stream().map(step -> ((Launch) step).blocks()).toList();
  }

  /** Heads, ranges of keys, and tiles of 16 rows; then each row of each head. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32 | 16  | 16 | 1  | 8192 | 512, 16
          f32 | 16  | 16 | 31 | 8192 | 256, 496
          f32 | 32  | 8  | 1  | 8192 | 512, 32
          f32 | 2   | 2  | 1  | 300  | 6, 2
          f32 | 2   | 2  | 1  | 128  | 2
          f32 | 600 | 600| 1  | 8192 | 600
          """)
  void sharesKeys(String dtype, int heads, int groups, int rows, int keys, String blocks) {
    assertThat(blocks(steps(dtype, heads, groups, rows, keys, "")))
        .containsExactlyElementsOf(
            List.of(blocks.split(", ")).stream().map(Integer::valueOf).toList());
  }

  @Test
  void causalRowsSeeFewKeys() {
    assertThat(blocks(steps("f32", 16, 16, 31, 8192, ", is_causal=True"))).containsExactly(32);
  }

  /** The second kernel reads what the first one left, and both say how much that is. */
  @Test
  void bothKernelsHaveTheSameScratchMemory() {
    var scratch =
        new KernelArgument.Memory(Address.scratch(0, 0), 16L * 32 * (128 + 2) * Float.BYTES);
    assertThat(steps("f32", 16, 16, 1, 8192, ""))
        .hasSize(2)
        .allSatisfy(step -> assertThat(((Launch) step).words()).contains(scratch));
  }

  @ParameterizedTest
  @CsvSource({
    "16, 16, 1, 8192, true",
    "16, 16, 4, 8192, false",
    "32, 8, 4, 8192, false",
    "16, 16, 16, 8192, false",
    "16, 16, 31, 8192, true",
    "16, 16, 4, 512, true",
    "64, 64, 4, 8192, true"
  })
  void cudnnGetsSingleRowsAndWhatKeepsTheGpuBusy(
      int heads, int groups, int rows, int keys, boolean cudnn) {
    assertThat(steps("bf16", heads, groups, rows, keys, "").getFirst() instanceof Attention)
        .isEqualTo(cudnn);
  }
}
