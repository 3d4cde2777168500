package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
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
    var program = new GroupProgram();
    for (int elements : ELEMENTS) {
      var input = program.input("%s[%s]".formatted(dtype.shortName(), elements));
      for (var op : OPS) {
        if (dtype.isFloat() || !op.equals("avg")) {
          program.output(program.collective("all_reduce(%s, \"%s\", \"g\")".formatted(input, op)));
        }
      }
    }
    compare(program.plan(ranks, "all_reduce", variant), 20);
  }

  /**
   * In place, of values that other collectives gave, on streams of their own where compute hides.
   */
  @ParameterizedTest
  @MethodSource("cases")
  void chainsInPlace(Variant variant, DType dtype, int ranks) {
    assumeTrue(
        dtype == DType.F32 || dtype == DType.BF16, "products of other types are another test");
    var program = new GroupProgram();
    var value = program.input("%s[257, 129]".formatted(dtype.shortName()));
    for (int i = 0; i < 12; i++) {
      var scaled = program.op("aten::mul.Scalar(%s, 0.75)".formatted(value));
      value = program.collective("all_reduce(%s, \"avg\", \"g\")".formatted(scaled));
    }
    program.output(value);
    compare(program.plan(ranks, "all_reduce", variant), 200);
  }

  /** Set bits are data like any other, in whatever type. */
  @ParameterizedTest
  @MethodSource("cases")
  void carriesWhatEmptyPlacesLookLike(Variant variant, DType dtype, int ranks) {
    var program = new GroupProgram();
    var input = program.input("%s[1003]".formatted(dtype.shortName()));
    for (var op : List.of("max", "sum")) {
      program.output(program.collective("all_reduce(%s, \"%s\", \"g\")".formatted(input, op)));
    }
    var plan = program.plan(ranks, "all_reduce", variant);
    Gpus.require(ranks);
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, new HostBackend())) {
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
            Bits.assertSame(
                actual,
                gpu.output(0, i).orElseThrow(),
                "output %s of ranks 0 and %s, run %s".formatted(i, rank, run));
            if (!dtype.isFloat()) {
              Bits.assertSame(
                  actual,
                  host.output(rank, i).orElseThrow(),
                  "output %s of rank %s, run %s".formatted(i, rank, run));
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
    var program = new GroupProgram();
    for (int elements : ELEMENTS) {
      var input = program.input("%s[%s]".formatted(dtype.shortName(), elements));
      program.output(program.collective("broadcast(%s, %s, \"g\")".formatted(input, root)));
    }
    compare(program.plan(ranks, "broadcast", Variant.TWO_SHOT), 20);
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
              .with(GroupProgram.asWritten("all_reduce", variant))
              .compile(GraphParser.parse(new SourceFile("groups.graph", text))),
          1000);
    }
  }

  /** A session that is opened when another one has used the memory before. */
  @Test
  void freshSessionsBeginWithEmptyWorkspaces() {
    int ranks = Gpus.ranks();
    for (int session = 0; session < 5; session++) {
      agreesWithTheHost(PUSHES.get(session % 2), DType.BF16, ranks);
    }
  }

  /** Other data in every tenth run; in those between, the host's results are still the same. */
  private static void compare(Plan plan, int runs) {
    // Elsewhere, at least all kernels are there.
    assertThat(DeviceLowering.lower(Lowering.lower(plan))).hasSize(plan.worldSize());
    Gpus.require(plan.worldSize());
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, new HostBackend())) {
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
        Bits.assertSame(gpu, host, "run " + run);
      }
    }
  }
}
