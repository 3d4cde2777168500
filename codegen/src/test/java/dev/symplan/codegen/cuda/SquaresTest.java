package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Tools;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/** What threads take at once where tensors lie in different ways. */
class SquaresTest {
  /** The texts of all tests here, which are compiled together. */
  private static final Set<String> KERNELS = new LinkedHashSet<>();

  @AfterAll
  static void theyCompile() {
    if (Tools.isInstalled("nvcc")) {
      Nvcc.check(List.copyOf(KERNELS));
    }
  }

  private static ImmutableList<DeviceProgram> programs(String inputs, String ops) {
    var text =
        """
        graph version 1
        group g = [0]
        graph t(%s) {
          %s
          return r
        }
        """
            .formatted(inputs, ops);
    return DeviceLowering.lower(
        Lowering.lower(
            Compiler.forTarget(Target.H200_X4)
                .with(CompileOptions.DEFAULT)
                .compile(GraphParser.parse(new SourceFile("test.graph", text)))));
  }

  private static String kernel(String inputs, String ops) {
    var programs = programs(inputs, ops);
    KERNELS.addAll(Nvcc.kernels(programs));
    var launches =
        programs.getFirst().steps().stream().flatMap(step -> step.launches().stream()).toList();
    assertThat(launches).hasSize(1);
    return launches.getFirst().kernel().text();
  }

  private static final String TURNED = "p = aten::permute(x, [0, 2, 1])\n  ";

  @Test
  void eachTensorIsReadAlongTheDimensionOfItsNeighbours() {
    var text =
        kernel(
            "x: f32[3, 64, 256], y: bf16[3, 256, 64], b: f32[64], c: f32[256, 1]",
            TURNED
                + "a = aten::add.Tensor(y, p)\n  d = aten::mul.Tensor(a, b)\n"
                + "  r = aten::mul.Tensor(d, c)");
    assertThat(text)
        .contains("Vector<bfloat_bits> m0[4];")
        .contains("from_bf16(m0[f].e[e])")
        .contains("Vector<float> m1[4];")
        .contains("(float)(m1[e].e[f])")
        .contains("const Vector<float> m2 =")
        .contains("(float)(m2.e[e])")
        .contains("const Vector<float> m3 =")
        .contains("(float)(m3.e[f])");
  }

  @Test
  void copiesGoAlongBoth() {
    assertThat(kernel("x: bf16[3, 64, 256]", TURNED + "r = aten::reshape(p, [49152])"))
        .contains("m[e] = *(const Vector<unsigned short>*)")
        .contains("o[f].e[e] = m[e].e[f];")
        .contains("*(Vector<unsigned short>*)");
  }

  /** A warp's squares are 8 by 4, so that each row of them is 32 bytes or more. */
  @Test
  void aShortSideGoesOnAlongTheNextDimension() {
    assertThat(
            kernel(
                "x: bf16[4, 512, 64]",
                "p = aten::permute(x, [2, 1, 0])\n  r = aten::reshape(p, [131072])"))
        .contains("i2 = (long long)(s % 1) * 4;")
        .contains("i1 = (long long)(s % 512);")
        .contains("i0 = (long long)(t % 16) * 4;");
  }

  @Test
  void sidesThatDoNotDivideGoElementByElement() {
    assertThat(kernel("x: f32[183, 181]", "p = aten::t(x)\n  r = aten::reshape(p, [33123])"))
        .doesNotContain("Vector")
        .contains("if (s >= 183 || t >= 181) {");
  }

  @Test
  void largerElementsMakeSmallerSquares() {
    var inputs = "x: f64[3, 64, 256], y: f64[3, 256, 64]";
    assertThat(kernel(inputs, TURNED + "r = aten::add.Tensor(y, p)"))
        .contains("Vector<double> m0[4]");
    assertThat(
            kernel(
                inputs + ", z: f64[3, 256, 64]",
                TURNED + "a = aten::add.Tensor(y, p)\n  r = aten::add.Tensor(a, z)"))
        .contains("Vector<double> m0[2]");
  }

  @Test
  void tensorsThatLieTheSameWayAreTakenInThatOrder() {
    assertThat(kernel("x: f32[3, 64, 256]", TURNED + "r = aten::relu(p)"))
        .contains("[i * 4]")
        .doesNotContain("i1");
  }

  @Test
  void longerResultsAreWritten16BytesAtOnce() {
    assertThat(kernel("x: bf16[64, 1024]", "r = prims::convert_element_type(x, torch.float32)"))
        .contains("T e[4];");
    assertThat(kernel("x: f32[64, 1024]", "r = prims::convert_element_type(x, torch.bfloat16)"))
        .contains("T e[8];");
  }

  @Test
  void shortTensorsAreTakenInTheOrderOfTheirDimensions() {
    assertThat(kernel("x: f32[1, 64, 511]", TURNED + "r = aten::reshape(p, [32704])"))
        .doesNotContain("s % 64");
  }

  /** A block holds the rows that share what memory delivers at once. */
  @Test
  void rowsThatLieInTwoWaysAreHeld() {
    var text =
        kernel(
            "x: bf16[8, 256, 64, 4], y: f32[8, 4, 64, 256]",
            "p = aten::permute(x, [0, 3, 2, 1])\n  a = aten::add.Tensor(p, y)\n"
                + "  r = aten::_softmax(a, 3, False)");
    assertThat(text)
        .contains("const unsigned own = threadIdx.x % 16;", "held0 + (row - first) * 528")
        .contains("r2 = left % 4;");
  }

  @Test
  void rowsWhoseElementsAreApartAreTakenSideBySide() {
    var text =
        kernel(
            "x: f32[8, 64, 32, 4]",
            "p = aten::permute(x, [0, 3, 2, 1])\n  r = aten::sum.dim_IntList(p, [3])");
    assertThat(text).contains("threadIdx.x % 32");
    // Neighbouring rows are neighbours in memory.
    assertThat(text.lastIndexOf("r0 = left % 4")).isNegative();
    assertThat(text).contains("r2 = left % 4;");
  }
}
