package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.codegen.cuda.DeviceStep.Convolution.Pass;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which convolutions cuDNN gets, and how it knows them. */
class ConvolutionLoweringTest {

  private static DeviceProgram lower(String inputs, String... lines) {
    var text =
        "graph version 1\ngraph t(%s) {\n%s\n}\n".formatted(inputs, String.join("\n", lines));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(1))
            .compile(GraphParser.parse(new SourceFile("t.graph", text)));
    return DeviceLowering.lower(Lowering.lower(plan)).getFirst();
  }

  /** {@return the steps as people read them, without kernels} */
  private static List<String> text(String inputs, String... lines) {
    return DeviceText.of(List.of(lower(inputs, lines)), 1)
        .lines()
        .skip(1)
        .takeWhile(line -> !line.isEmpty())
        .map(line -> line.strip().replaceAll("(kernel \\d+) <<<.*?>>>.*", "$1"))
        .toList();
  }

  @Test
  void forwardWithBias() {
    assertThat(
            text(
                "x: bf16[2, 6, 9, 8], w: bf16[4, 3, 3, 2], b: bf16[4]",
                "y = aten::convolution(x, w, b, [2, 1], [1, 0], [1, 3], False, [0, 0], 2)",
                "return y"))
        .containsExactly(
            "y: convolution compute forward in0:bf16[2, 6, 9, 8], in1:bf16[4, 3, 3, 2] →"
                + " local+0x0:bf16[2, 4, 5, 5], stride [2, 1], padding [1, 0], dilation [1, 3];"
                + " otherwise y: kernel 0",
            "y: kernel 1");
  }

  @Test
  void gradientsWithHeightOfVectors() {
    assertThat(
            text(
                "x: f32[2, 6, 9], w: f32[4, 3, 3], g: f32[2, 4, 4]",
                "p, q, r = aten::convolution_backward(g, x, w, None, [2], [0], [1], False, [0], 2,"
                    + " [True, True, False])",
                "return p, q"))
        .containsExactly(
            "p: convolution compute backward data in2:f32[2, 4, 1, 4], in1:f32[4, 3, 1, 3] →"
                + " local+0x0:f32[2, 6, 1, 9], stride [1, 2], padding [0, 0], dilation [1, 1];"
                + " otherwise p: kernel 0",
            "p: convolution compute backward filter in2:f32[2, 4, 1, 4], in0:f32[2, 6, 1, 9] →"
                + " local+0x200:f32[4, 3, 1, 3], stride [1, 2], padding [0, 0], dilation [1, 1];"
                + " otherwise p: kernel 1");
  }

  /** Windows that only more padding adds, no elements at all, and types that cuDNN lacks. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32[2, 3, 5, 5]    | [1, 1] | [2, 2] | True  | [1, 1] | false
          f32[2, 3, 5, 5]    | [2, 2] | [2, 2] | True  | [1, 1] | true
          f32[2, 3, 5, 5]    | [1, 1] | [2, 2] | False | [0, 0] | true
          f64[2, 3, 5, 5]    | [1, 1] | [1, 1] | False | [0, 0] | true
          f32[0, 3, 5, 5]    | [1, 1] | [1, 1] | False | [0, 0] | false
          f8e5m2[2, 3, 5, 5] | [1, 1] | [1, 1] | False | [0, 0] | false
          """)
  void cudnnGetsFloats(
      String type, String stride, String dilation, String transposed, String added, boolean cudnn) {
    var dtype = type.substring(0, type.indexOf('['));
    var steps =
        lower(
                "x: %s, w: %s[3, 3, 2, 2]".formatted(type, dtype),
                "y = aten::convolution(x, w, None, %s, [0, 0], %s, %s, %s, 1)"
                    .formatted(stride, dilation, transposed, added),
                "return y")
            .steps();
    assertThat(steps.stream().anyMatch(Convolution.class::isInstance)).isEqualTo(cudnn);
  }

  /** The other elements are zero: what lies between windows of one element is not computed. */
  @Test
  void gradientsBetweenWindowsAreNotComputed() {
    assertThat(
            text(
                "x: f32[2, 6, 9, 8], w: f32[4, 6, 1, 1], g: f32[2, 4, 5, 4]",
                "p, q, r = aten::convolution_backward(g, x, w, None, [2], [0], [1], False, [0], 1,"
                    + " [True, False, False])",
                "return p"))
        .containsExactly(
            "p: kernel 0",
            "p: convolution compute backward data in2:f32[2, 4, 5, 4], in1:f32[4, 6, 1, 1] →"
                + " scratch+0x0:f32[2, 6, 5, 4], stride [1, 1], padding [0, 0], dilation [1, 1];"
                + " otherwise p: kernel 1",
            "p: kernel 2");
  }

  /** Where a dimension has one element, its stride is what cuDNN knows the layout by. */
  @Test
  void stridesTellTheLayout() {
    var program =
        lower(
            "x0: f32[2, 5, 4, 8], w: f32[3, 8, 1, 1]",
            "x = aten::permute(x0, [0, 3, 1, 2])",
            "y = aten::convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)",
            "return y");
    var step = (Convolution) program.steps().getFirst();
    assertThat(step.weight().type().strides().toArray()).containsExactly(8, 1, 8, 8);
    assertThat(step.small().type().strides().toArray()).containsExactly(60, 1, 12, 3);
  }

  /**
   * Gaps are copied away, once for both gradients, and nothing of the library is over the copies.
   */
  @Test
  void partsAreCopied() {
    var steps =
        lower(
                "x0: f32[2, 8, 5, 5], w: f32[3, 4, 3, 3], g: f32[2, 3, 3, 3]",
                "x = aten::slice.Tensor(x0, 1, 2, 6)",
                "y = aten::convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)",
                "h = aten::expand(w, [3, 4, 3, 3])",
                "p, q, r = aten::convolution_backward(g, x, h, None, [1, 1], [0, 0], [1, 1], False,"
                    + " [0, 0], 1, [False, True, False])",
                "return y, q")
            .steps();
    assertThat(steps).hasSize(4);
    assertThat(steps.get(0)).isInstanceOf(Launch.class);
    var forward = (Convolution) steps.get(1);
    assertThat(forward.scratchBytes()).isEqualTo(1024);
    assertThat(forward.large().scratchEnd()).isEqualTo(2 * 4 * 5 * 5 * 4);
    assertThat(((Convolution) steps.get(3)).large()).isEqualTo(forward.large());
  }

  @Test
  void stepsRefuseWhatDoesNotFit() {
    var image = tensor(ArenaKind.LOCAL, 0, 2, 4, 5, 5);
    var weight = tensor(ArenaKind.LOCAL, 0, 3, 4, 3, 3);
    var result = tensor(ArenaKind.LOCAL, 0, 2, 3, 3, 3);
    assertThat(step(image, weight, result, 0).tensors()).hasSize(3);
    for (var wrong :
        List.of(
            tensor(ArenaKind.LOCAL, 0, 2, 3, 4, 3),
            tensor(ArenaKind.LOCAL, 0, 2, 4, 3, 3),
            tensor(ArenaKind.LOCAL, 0, 1, 3, 3, 3),
            tensor(ArenaKind.LOCAL, 0, 2, 3, 3))) {
      assertThatThrownBy(() -> step(image, weight, wrong, 0))
          .isInstanceOf(IllegalArgumentException.class);
    }
    var beside = tensor(ArenaKind.LOCAL, TensorRef.SCRATCH, 2, 4, 5, 5);
    assertThat(step(beside, weight, result, 800).scratchBytes()).isEqualTo(800);
    assertThatThrownBy(() -> step(beside, weight, result, 799))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("keeps 799 bytes");
  }

  private static TensorRef tensor(ArenaKind arena, int index, long... sizes) {
    return new TensorRef(arena, index, 0, TensorType.contiguous(DType.F32, sizes));
  }

  private static Convolution step(
      TensorRef large, TensorRef weight, TensorRef small, long scratchBytes) {
    var ones = ImmutableLongArray.of(1, 1);
    return new Convolution(
        StreamKind.COMPUTE,
        Pass.FORWARD,
        large,
        weight,
        small,
        new SlidingWindows(ones, ImmutableLongArray.of(0, 0), ones),
        scratchBytes,
        ImmutableList.of(),
        "y");
  }
}
