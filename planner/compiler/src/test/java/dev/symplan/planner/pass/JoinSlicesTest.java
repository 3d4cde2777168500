package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Sums of slices among zeros are concatenations, if the slices cover the sum. */
class JoinSlicesTest {
  private static final String TEXT =
      """
      graph version 1
      graph t(x: bf16[4, 8], y: bf16[4, 8]) {
        zeros = aten::full([4, 16], 0, dtype=torch.bfloat16)
        a = aten::slice_scatter(zeros, x, 1, 8, 9223372036854775807)
        b = aten::slice_scatter(zeros, y, 1, 0, 8)
        sum = aten::add.Tensor(a, b)
        o = aten::mul.Tensor(sum, 2)
        return o
      }
      """;

  private static List<String> ops(String text) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(1))
            .compile(GraphParser.parse(new SourceFile("t.graph", text)));
    return plan.forRank(0).graph().ops().stream()
        .map(op -> op.def().name().toString())
        .distinct()
        .toList();
  }

  @Test
  void slicesThatCoverAreJoined() {
    assertThat(ops(TEXT)).containsExactly("aten::add.Scalar", "aten::cat", "aten::mul.Tensor");
  }

  @ParameterizedTest(name = "{0} becomes {1}")
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          [4, 16], 0,          | [4, 16], 1,
          [4, 16], 0,          | [4, 16], -0.0,
          add.Tensor(a, b)     | add.Tensor(a, b, alpha=2)
          add.Tensor(a, b)     | mul.Tensor(a, b)
          zeros, y, 1, 0, 8    | zeros, y, 1, 1, 9
          zeros, y, 1, 0, 8    | zeros, y, 1, 8, 16
          zeros, y, 1, 0, 8    | zeros, y, 1, 0, 16, 2
          slice_scatter(zeros, y, 1, 0, 8) | slice_scatter(a, y, 1, 0, 8)
          return o             | return o, a
          """)
  void othersAreLeft(String from, String to) {
    assertThat(TEXT).contains(from);
    assertThat(ops(TEXT.replace(from, to)))
        .contains("aten::slice_scatter")
        .doesNotContain("aten::cat");
  }

  /** A bool plus the number 0 is not a bool. */
  @Test
  void boolsAreLeft() {
    var text = TEXT.replace("bf16", "b8").replace("torch.bfloat16", "torch.bool");
    assertThat(ops(text)).contains("aten::slice_scatter").doesNotContain("aten::cat");
  }

  @Test
  void zerosThatAreWrittenAreLeft() {
    var text = TEXT.replace("  a = ", "  w = aten::fill_.Scalar(zeros, 3)\n  a = ");
    assertThat(ops(text)).contains("aten::slice_scatter").doesNotContain("aten::cat");
  }
}
