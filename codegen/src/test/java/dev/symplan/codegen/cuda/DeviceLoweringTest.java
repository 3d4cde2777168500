package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DeviceLoweringTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");

  static Plan plan(Path file, ImmutableMap<String, Variant> variants) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withVariants(variants))
        .compile(file);
  }

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

  @ParameterizedTest
  @CsvSource({"collectives", "tp_mlp", "sp_block", "two_groups"})
  void textsOfSamples(String sample) {
    var plan = plan(SAMPLES.resolve(sample + ".graph"), ImmutableMap.of());
    var programs = DeviceLowering.lower(Lowering.lower(plan));
    Golden.check("cuda/" + sample + ".txt", DeviceText.of(programs.get(1)));
  }

  @Test
  void compilesForEveryArchitecture() {
    Set<String> kernels = new LinkedHashSet<>();
    for (var variant :
        List.of(
            Variant.ONE_SHOT,
            Variant.TWO_SHOT,
            Variant.ONE_SHOT_PUSH,
            Variant.TWO_SHOT_PUSH,
            Variant.PUSH,
            Variant.COPY_ENGINE)) {
      var forced = ImmutableMap.<String, Variant>builder();
      for (var kind : List.of(Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.ALL_TO_ALL, Kind.BROADCAST)) {
        if (variant.implementsKind(kind)) {
          forced.put(kind.name().toLowerCase(java.util.Locale.ROOT), variant);
        }
      }
      var plan = plan(SAMPLES.resolve("collectives.graph"), forced.buildOrThrow());
      for (var program : DeviceLowering.lower(Lowering.lower(plan))) {
        program.steps().stream()
            .filter(Launch.class::isInstance)
            .forEach(step -> kernels.add(((Launch) step).kernel().text()));
      }
    }
    for (var dtype : List.of("f64", "f32", "f16", "bf16", "i64", "i32", "u8")) {
      for (var op : List.of("sum", "min", "max", "product")) {
        kernels.add(allReduce(dtype, op, Variant.ONE_SHOT));
        kernels.add(allReduce(dtype, op, Variant.ONE_SHOT_PUSH));
      }
    }
    for (var variant : List.of(Variant.ONE_SHOT, Variant.ONE_SHOT_PUSH, Variant.TWO_SHOT_PUSH)) {
      kernels.add(allReduce("bf16", "avg", variant));
    }
    kernels.add(allReduce("f32", "max", Variant.TWO_SHOT_PUSH));
    Nvcc.check(List.copyOf(kernels));
  }

  private static String allReduce(String dtype, String op, Variant variant) {
    var programs =
        lower(
            """
            graph version 1
            group g = [0, 1]
            graph t(x: %s[37, 5]) {
              r = _c10d_functional::all_reduce(x, "%s", "g")
              o = _c10d_functional::wait_tensor(r)
              return o
            }
            """
                .formatted(dtype, op),
            ImmutableMap.of("all_reduce", variant));
    return programs.getFirst().steps().stream()
        .filter(Launch.class::isInstance)
        .map(step -> ((Launch) step).kernel().text())
        .findFirst()
        .orElseThrow();
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
    var kernels =
        programs.getFirst().steps().stream()
            .filter(Launch.class::isInstance)
            .map(step -> ((Launch) step).kernel().text())
            .distinct()
            .toList();
    assertThat(kernels).isNotEmpty();
    Nvcc.check(kernels);
  }

  @Test
  void namesOpsThatCannotRun() {
    assertThatThrownBy(
            () ->
                lower(
                    """
                    graph version 1
                    graph t(x: f32[8, 6]) {
                      a = aten::cumsum(x, 0)
                      return a
                    }
                    """))
        .isInstanceOf(UnsupportedOnGpu.class)
        .hasMessageContaining("aten::cumsum")
        .hasMessageContaining("test.graph:3");
  }
}
