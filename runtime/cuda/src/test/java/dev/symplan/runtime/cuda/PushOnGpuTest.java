package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Rewrites;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * All-reduces through workspaces, and the broadcast in two shots, against the host backend: to the
 * bit, run after run, of all sizes one after the other.
 */
@Tag("gpu")
class PushOnGpuTest {
  private static final List<Variant> PUSHES = List.of(Variant.ONE_SHOT_PUSH, Variant.TWO_SHOT_PUSH);

  /** Odd ones, tails, less than one packet, fewer packets than ranks, and a few hundred KiB. */
  private static final List<Integer> ELEMENTS =
      List.of(1, 2, 3, 5, 7, 8, 9, 17, 63, 1000, 4099, 16384, 32771, 100_003);

  private static final List<String> OPS = List.of("sum", "avg", "min", "max", "product");

  /** A word of set bits is what an empty place of a workspace is. */
  private static final byte EMPTY = -1;

  private static int gpus() {
    var problem = Libraries.problem();
    assumeTrue(problem.isEmpty(), problem.orElse(""));
    var count = new int[1];
    new Check(0).runtime(cudart.cudaGetDeviceCount(count), "cudaGetDeviceCount");
    return Math.min(4, count[0]);
  }

  static Stream<Arguments> cases() {
    return PUSHES.stream()
        .flatMap(
            variant ->
                Stream.of(
                        DType.F32, DType.BF16, DType.F16, DType.F64, DType.I64, DType.I32, DType.U8)
                    .flatMap(
                        dtype ->
                            IntStream.rangeClosed(2, 4)
                                .mapToObj(ranks -> Arguments.of(variant, dtype, ranks))));
  }

  /** One program holds all sizes and reductions, so that they also follow each other. */
  @ParameterizedTest
  @MethodSource("cases")
  void agreesWithTheHost(Variant variant, DType dtype, int ranks) {
    var inputs = new ArrayList<String>();
    var lines = new ArrayList<String>();
    var outputs = new ArrayList<String>();
    for (int i = 0; i < ELEMENTS.size(); i++) {
      inputs.add("x%d: %s[%d]".formatted(i, dtype.shortName(), ELEMENTS.get(i)));
      for (var op : OPS) {
        if (dtype.isFloat() || !op.equals("avg")) {
          var name = "%s%d".formatted(op, i);
          lines.add(
              "r_%s = _c10d_functional::all_reduce(x%d, \"%s\", \"g\")".formatted(name, i, op));
          lines.add("o_%1$s = _c10d_functional::wait_tensor(r_%1$s)".formatted(name));
          outputs.add("o_" + name);
        }
      }
    }
    compare(plan(ranks, inputs, lines, outputs, "all_reduce", variant), 20);
  }

  /**
   * In place, of values that other collectives gave, on streams of their own where compute hides.
   */
  @ParameterizedTest
  @MethodSource("cases")
  void chainsInPlace(Variant variant, DType dtype, int ranks) {
    assumeTrue(gpus() >= ranks, "there are fewer GPUs");
    assumeTrue(
        dtype == DType.F32 || dtype == DType.BF16, "products of other types are another test");
    var lines = new ArrayList<String>();
    var value = "x";
    for (int i = 0; i < 12; i++) {
      lines.add("a%d = aten::mul.Scalar(%s, 0.75)".formatted(i, value));
      lines.add("r%1$d = _c10d_functional::all_reduce(a%1$d, \"avg\", \"g\")".formatted(i));
      lines.add("o%1$d = _c10d_functional::wait_tensor(r%1$d)".formatted(i));
      value = "o" + i;
    }
    var inputs = List.of("x: %s[257, 129]".formatted(dtype.shortName()));
    compare(plan(ranks, inputs, lines, List.of(value), "all_reduce", variant), 200);
  }

  /** Set bits are data like any other, in whatever type. */
  @ParameterizedTest
  @MethodSource("cases")
  void carriesWhatEmptyPlacesLookLike(Variant variant, DType dtype, int ranks) {
    var inputs = List.of("x: %s[1003]".formatted(dtype.shortName()));
    var lines =
        List.of(
            "r = _c10d_functional::all_reduce(x, \"max\", \"g\")",
            "o = _c10d_functional::wait_tensor(r)",
            "s = _c10d_functional::all_reduce(x, \"sum\", \"g\")",
            "p = _c10d_functional::wait_tensor(s)");
    var plan = plan(ranks, inputs, lines, List.of("o", "p"), "all_reduce", variant);
    assumeTrue(gpus() >= ranks, "there are fewer GPUs");
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, Backend.HOST)) {
      for (int run = 0; run < 10; run++) {
        for (var session : List.of(gpu, host)) {
          for (int rank = 0; rank < ranks; rank++) {
            var memory = session.input(rank, 0).orElseThrow().memory();
            memory.fill(EMPTY);
            // Some ranks' data is something else, at other places in each run.
            if (rank % 2 == run % 2) {
              memory.asSlice(run * 16L, 64).fill((byte) (3 + rank));
            }
          }
          session.run();
        }
        for (int rank = 0; rank < ranks; rank++) {
          for (int i = 0; i < 2; i++) {
            var actual = gpu.output(rank, i).orElseThrow();
            // All ranks have the same bits; which not-a-number it is differs from the host's.
            assertThat(mismatch(actual, gpu.output(0, i).orElseThrow()))
                .as("output %d of ranks 0 and %d, run %d", i, rank, run)
                .isEqualTo(-1);
            if (!dtype.isFloat()) {
              assertThat(mismatch(actual, host.output(rank, i).orElseThrow()))
                  .as("output %d of rank %d, run %d", i, rank, run)
                  .isEqualTo(-1);
            }
          }
        }
      }
    }
  }

  static Stream<Arguments> broadcasts() {
    return Stream.of(DType.F32, DType.BF16, DType.U8)
        .flatMap(
            dtype ->
                IntStream.rangeClosed(2, 4)
                    .boxed()
                    .flatMap(
                        ranks ->
                            IntStream.range(0, ranks)
                                .mapToObj(root -> Arguments.of(dtype, ranks, root))));
  }

  @ParameterizedTest
  @MethodSource("broadcasts")
  void broadcastsInTwoShots(DType dtype, int ranks, int root) {
    var inputs = new ArrayList<String>();
    var lines = new ArrayList<String>();
    var outputs = new ArrayList<String>();
    for (int i = 0; i < ELEMENTS.size(); i++) {
      inputs.add("x%d: %s[%d]".formatted(i, dtype.shortName(), ELEMENTS.get(i)));
      lines.add("r%1$d = _c10d_functional::broadcast(x%1$d, %2$d, \"g\")".formatted(i, root));
      lines.add("o%1$d = _c10d_functional::wait_tensor(r%1$d)".formatted(i));
      outputs.add("o" + i);
    }
    compare(plan(ranks, inputs, lines, outputs, "broadcast", Variant.TWO_SHOT), 20);
  }

  /** Two groups in two workspaces, one within the other. */
  @Test
  void groupsDoNotDisturbEachOther() {
    var text =
        """
        graph version 1
        group all = [0, 1, 2, 3]
        group pairs = [0, 1], [2, 3]
        graph t(x: bf16[1001], y: f32[40003]) {
          a = _c10d_functional::all_reduce(x, "sum", "all")
          b = _c10d_functional::all_reduce(y, "sum", "pairs")
          c = _c10d_functional::all_reduce(b, "max", "all")
          d = _c10d_functional::all_reduce(a, "avg", "pairs")
          e = _c10d_functional::all_reduce(c, "avg", "pairs")
          return d, e
        }
        """;
    for (var variant : PUSHES) {
      compare(
          Compiler.forTarget(Target.H200_X4)
              .with(options("all_reduce", variant))
              .compile(GraphParser.parse(new SourceFile("groups.graph", text))),
          1000);
    }
  }

  /** A session that is opened when another one has used the memory before. */
  @Test
  void freshSessionsBeginWithEmptyWorkspaces() {
    int ranks = gpus();
    assumeTrue(ranks > 1, "one GPU has no peers");
    for (int session = 0; session < 5; session++) {
      agreesWithTheHost(PUSHES.get(session % 2), DType.BF16, ranks);
    }
  }

  private static CompileOptions options(String kind, Variant variant) {
    return CompileOptions.DEFAULT
        .withRewrites(Rewrites.OFF)
        .withVariants(ImmutableMap.of(kind, variant));
  }

  private static Plan plan(
      int ranks,
      List<String> inputs,
      List<String> lines,
      List<String> outputs,
      String kind,
      Variant variant) {
    var text =
        """
        graph version 1
        group g = [%s]
        graph t(%s) {
          %s
          return %s
        }
        """
            .formatted(
                IntStream.range(0, ranks)
                    .mapToObj(Integer::toString)
                    .collect(Collectors.joining(", ")),
                String.join(", ", inputs),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    return Compiler.forTarget(CollectivesOnGpuTest.ROOMY)
        .with(options(kind, variant))
        .compile(GraphParser.parse(new SourceFile("push.graph", text)));
  }

  /** Other data in every tenth run; in those between, the host's results are still the same. */
  private static void compare(Plan plan, int runs) {
    // Elsewhere, at least all kernels are there.
    assertThat(DeviceLowering.lower(Lowering.lower(plan))).hasSize(plan.worldSize());
    assumeTrue(gpus() >= plan.worldSize(), "there are fewer GPUs");
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, Backend.HOST)) {
      for (int run = 0; run < runs; run++) {
        if (run % 10 == 0) {
          for (var session : List.of(gpu, host)) {
            for (int rank = 0; rank < session.ranks(); rank++) {
              for (int i = 0; i < session.inputNames().size(); i++) {
                SeededInputs.fill(session.input(rank, i).orElseThrow(), run, rank, "x" + i);
              }
            }
          }
          host.run();
        }
        gpu.run();
        for (int rank = 0; rank < gpu.ranks(); rank++) {
          for (int i = 0; i < gpu.outputCount(); i++) {
            assertThat(
                    mismatch(gpu.output(rank, i).orElseThrow(), host.output(rank, i).orElseThrow()))
                .as("output %d of rank %d, run %d", i, rank, run)
                .isEqualTo(-1);
          }
        }
      }
    }
  }

  private static long mismatch(HostTensor a, HostTensor b) {
    return a.memory()
        .asSlice(0, a.type().storageBytes())
        .mismatch(b.memory().asSlice(0, b.type().storageBytes()));
  }
}
