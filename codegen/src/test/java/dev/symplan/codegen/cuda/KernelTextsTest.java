package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The work in the streams for each sample, with its kernels, and that these compile. */
class KernelTextsTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");

  private static final List<Variant> GENERATED =
      List.of(
          Variant.ONE_SHOT,
          Variant.TWO_SHOT,
          Variant.ONE_SHOT_PUSH,
          Variant.TWO_SHOT_PUSH,
          Variant.PUSH,
          Variant.COPY_ENGINE);

  /** Refuses no workspace for its size. */
  private static final Target ROOMY =
      TargetFile.read(
          new SourceFile(
              "roomy.json",
              """
              {"format": "symplan-target", "version": 1, "name": "roomy", "base": "h200x4",
               "workspace_bytes": 1073741824}
              """));

  private static final String SMALL = "[37, 5]";

  static List<String> samples() {
    try (var files = Files.list(SAMPLES)) {
      return files
          .map(file -> String.valueOf(file.getFileName()))
          .filter(name -> name.endsWith(".graph"))
          .map(name -> name.substring(0, name.length() - ".graph".length()))
          .sorted()
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Executable executable(String sample, CompileOptions options) {
    return Lowering.lower(
        Compiler.forTarget(Target.H200_X4)
            .with(options)
            .compile(SAMPLES.resolve(sample + ".graph")));
  }

  @ParameterizedTest
  @MethodSource("samples")
  void textsOfSamples(String sample) {
    var executable = executable(sample, CompileOptions.DEFAULT);
    String text;
    try {
      text = DeviceText.of(DeviceLowering.lower(executable), 2);
    } catch (UnsupportedOnGpu e) {
      text = "cannot run: " + e.getMessage() + "\n";
    }
    Golden.check("cuda/" + sample + ".txt", text);
  }

  /** Every variant of every sample, and every type with every reduction. */
  @Test
  void compilesForEveryArchitecture() {
    Set<String> kernels = new LinkedHashSet<>();
    for (var sample : samples()) {
      try {
        var programs = DeviceLowering.lower(executable(sample, CompileOptions.DEFAULT));
        kernels.addAll(Nvcc.kernels(programs));
        kernels.addAll(Nvcc.kernels(programs.stream().map(DependentLaunches::in).toList()));
      } catch (UnsupportedOnGpu e) {
        assertThat(e).hasMessageContaining(".graph:");
      }
    }
    for (var variant : GENERATED) {
      kernels.addAll(collectives(variant));
    }
    for (var dtype : List.of("f64", "f32", "f16", "bf16", "i64", "i32", "u8")) {
      for (var op : List.of("sum", "min", "max", "product")) {
        kernels.add(allReduce(dtype + SMALL, op, Variant.ONE_SHOT));
        kernels.add(allReduce(dtype + SMALL, op, Variant.ONE_SHOT_PUSH));
      }
    }
    for (var variant : List.of(Variant.ONE_SHOT, Variant.ONE_SHOT_PUSH, Variant.TWO_SHOT_PUSH)) {
      kernels.add(allReduce("bf16" + SMALL, "avg", variant));
    }
    kernels.add(allReduce("f32" + SMALL, "max", Variant.TWO_SHOT_PUSH));
    for (var dtype : List.of("f32", "f16", "bf16")) {
      kernels.add(allReduce(dtype + "[8388608]", "sum", Variant.TWO_SHOT));
    }
    kernels.addAll(pushed("convert_element_type(x, torch.bfloat16)", 0));
    kernels.addAll(pushed("convert_element_type(x, torch.float64)", 1));
    for (var variant : List.of(Variant.ONE_SHOT, Variant.ONE_SHOT_PUSH)) {
      kernels.addAll(behind("bf16[2048, 4096]", variant));
      kernels.addAll(behind("f32[16, 1000]", variant));
      kernels.addAll(behind("f16[3, 5, 64]", variant));
      kernels.addAll(behind("f64[2048, 4096]", variant));
      kernels.addAll(scanned("bf16[64, 4096]", variant));
    }
    kernels.addAll(behind("bf16[64, 4096]", Variant.TWO_SHOT));
    kernels.addAll(behind("f32[16, 1000]", Variant.TWO_SHOT));
    kernels.addAll(behind("f16[2, 256, 64]", Variant.TWO_SHOT));
    Nvcc.check(List.copyOf(kernels));
  }

  /** The kernel of a conversion and the gather of its result. */
  private static Set<String> pushed(String conversion, int dim) {
    var programs =
        lowerOps(
            Target.H200_X4,
            "f32[128, 512]",
            "c = prims::%s\n  r = symplan::all_gather_dim(c, %s, 2, \"g\")"
                .formatted(conversion, dim),
            ImmutableMap.of("all_gather", Variant.PUSH));
    assertThat(programs.getFirst().steps()).hasSize(1);
    return Nvcc.kernels(programs);
  }

  /** The kernel of an all_reduce and a norm. */
  private static Set<String> behind(String type, Variant variant) {
    var programs =
        lowerOps(
            ROOMY,
            type,
            """
            s = _c10d_functional::all_reduce(x, "sum", "g")
              w = _c10d_functional::wait_tensor(s)
              a = aten::add.Tensor(x, w)
              q = aten::pow.Tensor_Scalar(a, 2)
              m = aten::mean.dim(q, [-1], True)
              e = aten::rsqrt(m)
              r = aten::mul.Tensor(a, e)
            """
                .stripTrailing(),
            ImmutableMap.of("all_reduce", variant));
    assertThat(programs.getFirst().steps())
        .singleElement()
        .isInstanceOfSatisfying(
            DeviceStep.Launch.class, launch -> assertThat(launch.shares()).hasSize(2));
    return Nvcc.kernels(programs);
  }

  /** An all_reduce and sums along rows, of which a block takes more than it can hold. */
  private static Set<String> scanned(String type, Variant variant) {
    return Nvcc.kernels(
        lowerOps(
            ROOMY,
            type,
            """
            s = _c10d_functional::all_reduce(x, "sum", "g")
              w = _c10d_functional::wait_tensor(s)
              r = aten::cumsum(w, 1)
            """
                .stripTrailing(),
            ImmutableMap.of("all_reduce", variant)));
  }

  /** The kernels of all collectives that a variant exists for. */
  private static Set<String> collectives(Variant variant) {
    var forced =
        Arrays.stream(Kind.values())
            .filter(kind -> kind != Kind.CUSTOM && variant.implementsKind(kind))
            .collect(ImmutableMap.toImmutableMap(Kind::text, _ -> variant));
    return Nvcc.kernels(
        DeviceLowering.lower(
            executable("collectives", CompileOptions.DEFAULT.withVariants(forced))));
  }

  private static ImmutableList<DeviceProgram> lower(
      Target target, String type, String call, ImmutableMap<String, Variant> variants) {
    return lowerOps(target, type, "r = _c10d_functional::" + call, variants);
  }

  private static ImmutableList<DeviceProgram> lowerOps(
      Target target, String type, String ops, ImmutableMap<String, Variant> variants) {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(x: %s) {
          %s
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """
            .formatted(type, ops);
    return DeviceLowering.lower(
        Lowering.lower(
            Compiler.forTarget(target)
                .with(CompileOptions.DEFAULT.withMulticast(true).withVariants(variants))
                .compile(GraphParser.parse(new SourceFile("test.graph", text)))));
  }

  private static String allReduce(String type, String op, Variant variant) {
    var programs =
        lower(
            Target.H200_X4,
            type,
            "all_reduce(x, \"%s\", \"g\")".formatted(op),
            ImmutableMap.of("all_reduce", variant));
    return Nvcc.kernels(programs).iterator().next();
  }

  private static String multimem(String kind, String type, String call) {
    return multimem(kind, type, call, Variant.MULTIMEM);
  }

  private static String multimem(String kind, String type, String call, Variant variant) {
    return Nvcc.kernels(lower(Target.H200_X8, type, call, ImmutableMap.of(kind, variant)))
        .iterator()
        .next();
  }

  /** All kernels that use multicast, by what is added and where it goes. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "all_reduce | MULTIMEM | bf16[4099] | all_reduce(x, \"sum\", \"g\")",
        "all_reduce | MULTIMEM_ONE_SHOT | f16[4099] | all_reduce(x, \"sum\", \"g\")",
        "reduce_scatter | MULTIMEM | f32[64, 3] | reduce_scatter_tensor(x, \"sum\", 2, \"g\")",
        "all_gather | MULTIMEM | u8[77] | all_gather_into_tensor(x, 2, \"g\")",
        "broadcast | MULTIMEM | i64[9] | broadcast(x, 1, \"g\")",
      })
  void textsOfMultimem(String kind, Variant variant, String type, String call) {
    Golden.check(
        "cuda/%s-%s.txt".formatted(kind, variant.text()),
        DeviceText.of(lower(Target.H200_X8, type, call, ImmutableMap.of(kind, variant)), 2));
  }

  /** Only from sm_90 on are there such instructions. */
  @Test
  void multimemCompilesToTheSwitchsInstructions() {
    var reduce = multimem("all_reduce", "bf16[4099]", "all_reduce(x, \"sum\", \"g\")");
    var half = multimem("all_reduce", "f16[4099]", "all_reduce(x, \"sum\", \"g\")");
    var scatter =
        multimem("reduce_scatter", "f32[64, 3]", "reduce_scatter_tensor(x, \"sum\", 2, \"g\")");
    var gather = multimem("all_gather", "u8[77]", "all_gather_into_tensor(x, 2, \"g\")");
    var broadcast = multimem("broadcast", "i64[9]", "broadcast(x, 1, \"g\")");
    var single = multimem("all_reduce", "f32[4099]", "all_reduce(x, \"sum\", \"g\")");
    var oneShot =
        multimem(
            "all_reduce", "bf16[4099]", "all_reduce(x, \"sum\", \"g\")", Variant.MULTIMEM_ONE_SHOT);
    var ptx =
        Nvcc.ptx(
            List.of(reduce, half, scatter, gather, broadcast, single, oneShot), Nvcc.FROM_HOPPER);
    var load = "multimem.ld_reduce.relaxed.sys.global.add";
    var store = "multimem.st.relaxed.sys.global.v4.f32";
    assertThat(ptx.get(0)).contains(load + ".acc::f32.v4.bf16x2", store);
    assertThat(ptx.get(1)).contains(load + ".acc::f32.v4.f16x2", store);
    assertThat(ptx.get(2)).contains(load + ".v4.f32").doesNotContain(store);
    assertThat(ptx.get(3)).contains(store).doesNotContain(load);
    assertThat(ptx.get(4)).contains(store).doesNotContain(load);
    assertThat(ptx.get(5)).contains(load + ".v4.f32", store);
    assertThat(ptx.get(6)).contains(load + ".acc::f32.v4.bf16x2").doesNotContain(store);
    for (var kernel : ptx) {
      int begin = kernel.indexOf("fence.proxy.alias;");
      assertThat(begin).isLessThan(kernel.indexOf("multimem."));
      assertThat(kernel.indexOf("fence.proxy.alias;", begin + 1))
          .isGreaterThan(kernel.lastIndexOf("multimem."));
    }
  }

  @Test
  void multimemIsForTargetsWithMulticastOnly() {
    assertThatThrownBy(
            () ->
                lower(
                    Target.H200_X4,
                    "bf16[64]",
                    "all_reduce(x, \"sum\", \"g\")",
                    ImmutableMap.of("all_reduce", Variant.MULTIMEM)))
        .hasMessageContaining("the target has no multicast");
  }
}
