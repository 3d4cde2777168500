package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import java.util.List;
import org.junit.jupiter.api.Test;

class DeviceLoweringTest {
  private static ImmutableList<DeviceProgram> lower(
      String text, ImmutableMap<String, Variant> variants) {
    var program = GraphParser.parse(new SourceFile("test.graph", text));
    var compiler =
        Compiler.forTarget(Target.H200_X4).with(CompileOptions.DEFAULT.withVariants(variants));
    return DeviceLowering.lower(Lowering.lower(compiler.compile(program)));
  }

  private static ImmutableList<DeviceProgram> lower(String text) {
    return lower(text, ImmutableMap.of());
  }

  @Test
  void compilesElementwiseOps() {
    var programs =
        lower(
            """
            graph version 1
            graph t(x: bf16[8, 6], y: f32[6], n: i64[8, 6], b: b8[8, 1]) {
              a = aten::add.Tensor(x, y, alpha=2)
              s = aten::silu(a)
              c = prims::convert_element_type(s, torch.float16)
              d = aten::div.Tensor(n, 3)
              e = aten::where.self(b, d, y)
              m = aten::mul.Tensor(n, n)
              k = aten::bitwise_and.Tensor(m, n)
              l = aten::lt.Scalar(e, 0.5)
              q = aten::bitwise_not(l)
              z = aten::pow.Tensor_Scalar(y, 2.5)
              u = aten::maximum(e, y)
              w = aten::clamp_min(u, -0.25)
              p = aten::permute(x, [1, 0])
              h = aten::clone(p, memory_format=torch.contiguous_format)
              j = aten::cat([x, a], 1)
              return c, k, q, z, w, h, j
            }
            """);
    var kernels = List.copyOf(Nvcc.kernels(programs.subList(0, 1)));
    assertThat(kernels).isNotEmpty();
    Nvcc.check(kernels);
  }

  @Test
  void countsElementsOfLargeTensorsInSixtyFourBits() {
    for (var lines :
        List.of(
            "r = aten::neg(x)",
            "y = aten::expand(b, [2, 2147483656])\n  r = aten::add.Tensor(x, y)")) {
      var programs =
          lower(
              """
              graph version 1
              graph t(x: bf16[2, 2147483656], b: bf16[2, 1]) {
                %s
                return r
              }
              """
                  .formatted(lines));
      var kernels = Nvcc.kernels(programs.subList(0, 1));
      assertThat(kernels)
          .singleElement()
          .asString()
          .contains("for (unsigned long long i = ")
          .doesNotContain("unsigned i", "unsigned step", "unsigned rest");
    }
  }

  /** Conversions straight to eight bits keep to their bounds on GPUs; others wrap around. */
  @Test
  void convertsFloatsToBytesByLongIntegers() {
    var programs =
        lower(
            """
            graph version 1
            graph t(x: f32[3], y: u8[3]) {
              r = aten::copy_(y, x)
              return r
            }
            """);
    assertThat(Nvcc.kernels(programs.subList(0, 1)))
        .singleElement()
        .asString()
        .contains("(unsigned char)(long long)(float)(((const float*)args.memory[");
  }

  @Test
  void compilesRowsPlacesAndAttention() {
    var programs =
        lower(
            """
            graph version 1
            graph t(x: bf16[64, 600], w: bf16[600], l: f32[3, 100000], n: i64[64, 9],
                    q: bf16[2, 4, 50, 64], k: bf16[2, 2, 70, 64], b: bf16[2, 4, 50, 70], b2: bf16[2, 4, 50, 50]) {
              f = prims::convert_element_type(x, torch.float32)
              s = aten::pow.Tensor_Scalar(f, 2)
              m = aten::mean.dim(s, [-1], True)
              e = aten::add.Scalar(m, 1e-05)
              r = aten::rsqrt(e)
              y = aten::mul.Tensor(f, r)
              z = aten::mul.Tensor(y, w)
              o = aten::_softmax(l, -1, False)
              v, i = aten::max.dim(n, 1)
              c = aten::cumsum(n, 1)
              d = aten::embedding(x, n)
              g = aten::index_put(x, [i], x, True)
              p = aten::constant_pad_nd(x, [1, 2], 0.5)
              a = aten::scaled_dot_product_attention(q, k, k, b, enable_gqa=True)
              u, h, j, t = aten::_scaled_dot_product_efficient_attention(q, q, q, None, True)
              dq, dk, dv = aten::_scaled_dot_product_efficient_attention_backward(q, q, q, q, b2, u, h, j, t, 0.0, [True, True, True, False], True)
              return z, o, v, c, d, g, p, a, dq, dk, dv
            }
            """);
    var kernels = List.copyOf(Nvcc.kernels(programs.subList(0, 1)));
    assertThat(kernels).hasSizeGreaterThan(9);
    // Nothing in them depends on the architecture.
    assertThat(Nvcc.ptx(kernels, ImmutableList.of("sm_80"))).hasSameSizeAs(kernels);
  }

  /** With rows and columns side by side or not, and the tiles of many rows and of few. */
  @Test
  void compilesGroupedProducts() {
    var programs =
        lower(
            """
            graph version 1
            graph t(x: bf16[512, 256], y: bf16[256, 512], v: bf16[8, 256, 128], w: f16[8, 128, 256], z: f16[64, 256], o: i32[8]) {
              p = aten::permute(w, [0, 2, 1])
              q = aten::permute(y, [1, 0])
              r = aten::permute(x, [1, 0])
              a = aten::_grouped_mm(x, v, o)
              b = aten::_grouped_mm(z, p, o, None, torch.float32)
              c = aten::_grouped_mm(q, v, o)
              e = aten::_grouped_mm(r, x, o)
              return a, b, c, e
            }
            """);
    var kernels = List.copyOf(Nvcc.kernels(programs.subList(0, 1)));
    assertThat(Nvcc.ptx(kernels, ImmutableList.of("sm_80")))
        .hasSizeGreaterThan(3)
        .allMatch(ptx -> ptx.contains("mma.sync") && ptx.contains("ldmatrix"));
    var forHopper = List.copyOf(Nvcc.forHopperAlone(programs.subList(0, 1)));
    assertThat(Nvcc.ptx(forHopper, ImmutableList.of("sm_90a")))
        .hasSameSizeAs(kernels)
        .allMatch(ptx -> ptx.contains("wgmma.mma_async") && ptx.contains("cp.async.bulk.tensor"));
  }

  @Test
  void reducesBoolsByNcclAsBytes() {
    var programs =
        lower(
            """
            graph version 1
            group g = [0, 1]
            graph t(x: b8[8, 6]) {
              a = _c10d_functional::all_reduce(x, "sum", "g")
              b = _c10d_functional::all_reduce(x, "product", "g")
              return a, b
            }
            """,
            ImmutableMap.of("all_reduce", Variant.NCCL));
    assertThat(programs.getFirst().steps())
        .filteredOn(DeviceStep.Nccl.class::isInstance)
        .flatExtracting(step -> ((DeviceStep.Nccl) step).calls())
        .extracting(DeviceStep.NcclCall::dtype, call -> call.reduceOp().orElseThrow())
        .containsExactly(tuple(DType.U8, ReduceOp.MAX), tuple(DType.U8, ReduceOp.PRODUCT));
  }

  @Test
  void namesOpsThatCannotRun() {
    assertThatThrownBy(
            () ->
                lower(
                    """
                    graph version 1
                    group g = [0, 1]
                    op lab::mix(Tensor input, str group) -> Tensor  group(group)
                    graph t(x: f32[8, 6]) {
                      a: f32[8, 6] = lab::mix(x, "g")
                      return a
                    }
                    """))
        .isInstanceOf(UnsupportedOnGpu.class)
        .hasMessageContaining("lab::mix")
        .hasMessageContaining("test.graph:5");
  }
}
