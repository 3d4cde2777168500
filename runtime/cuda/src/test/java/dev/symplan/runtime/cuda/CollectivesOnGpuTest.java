package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.CudaKernels;
import dev.symplan.codegen.cuda.CudaKernels.LaunchShape;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.SeededInputs;
import dev.symplan.runtime.tensor.TensorDiff;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every variant against the host backend, whose arithmetic is the same to the bit. */
@Tag("gpu")
class CollectivesOnGpuTest {
  private static final List<Kind> KINDS =
      List.of(
          Kind.ALL_REDUCE,
          Kind.ALL_GATHER,
          Kind.REDUCE_SCATTER,
          Kind.ALL_TO_ALL,
          Kind.BROADCAST,
          Kind.COLLECTIVE_PERMUTE);

  private static final List<DType> DTYPES =
      List.of(DType.F32, DType.BF16, DType.F16, DType.I64, DType.U8);

  private static final int RUNS = 10_000;

  private static final long[] SIZES = {8, 1000, 4100, 65536 + 8, (1 << 20) + 24};

  static Stream<Arguments> variants() {
    return KINDS.stream()
        .flatMap(
            kind ->
                Stream.of(Variant.values())
                    .filter(v -> v.implementsKind(kind))
                    .filter(v -> v != Variant.LOCAL)
                    .filter(v -> !VariantSpec.of(kind, v).needsMulticast())
                    .map(v -> Arguments.of(kind, v)));
  }

  /** Tests never use multicast: nobody knows whether they may, on the host that they are on. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"MULTIMEM", "MULTIMEM_ONE_SHOT"})
  void multimemIsRefusedWithoutTheOption(Variant variant) {
    int ranks = Gpus.ranks();
    var plan =
        Compiler.forTarget(Target.H200_X8)
            .with(
                CompileOptions.DEFAULT
                    .withMulticast(true)
                    .withVariants(ImmutableMap.of("all_reduce", variant)))
            .compile(BenchPrograms.collective(Kind.ALL_REDUCE, DType.BF16, 4096, ranks));
    assertThatThrownBy(() -> Session.open(plan, new CudaBackend()))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("is planned as " + variant.text())
        .hasMessageContaining("only with --multicast=on");
    assertThatThrownBy(() -> CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10)))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("add --multicast=on");
  }

  @ParameterizedTest
  @MethodSource("variants")
  void agreesWithTheHost(Kind kind, Variant variant) {
    int ranks = Gpus.ranks();
    for (var dtype : DTYPES) {
      boolean byNccl =
          variant == Variant.NCCL || variant == Variant.NCCL_SYMM || variant == Variant.NCCL_CE;
      boolean floatsOnly =
          variant == Variant.NCCL_SYMM || (variant == Variant.TWO_SHOT && kind == Kind.ALL_REDUCE);
      if (floatsOnly && !dtype.isFloat()) {
        continue;
      }
      // Making NCCL's communicators takes long, and its arithmetic is not ours to test.
      // Other slices of its symmetric reduce_scatter are refused.
      boolean slices = kind == Kind.REDUCE_SCATTER && variant == Variant.NCCL_SYMM;
      long ofNccl = slices ? 4096 : 4100;
      for (long bytes : byNccl ? new long[] {ofNccl} : SIZES) {
        var plan =
            BenchPrograms.plan(
                BenchPrograms.collective(kind, dtype, bytes, ranks),
                GroupProgram.ROOMY,
                kind,
                variant);
        compare(
            plan, 3, byNccl && kind.name().contains("REDUCE"), "%s of %s".formatted(dtype, bytes));
      }
    }
  }

  @Test
  void registeredOpsAgreeWithTheHost() {
    try (var _ = RegisteredKernels.register()) {
      compare(RegisteredKernels.plan(Gpus.ranks()), 200, false, "registered ops");
    }
  }

  @ParameterizedTest
  @MethodSource("dev.symplan.runtime.cuda.SplitExchange#calls")
  void exchangesBySplitsAgreeWithTheHost(String call) {
    var exchange = SplitExchange.of(call, Gpus.ranks());
    var plan = exchange.plan();
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, new HostBackend())) {
      for (var splits : SplitExchange.Splits.values()) {
        for (long seed = 0; seed < 50; seed++) {
          for (var session : List.of(gpu, host)) {
            exchange.fill(session, splits, seed);
            session.run();
          }
          Bits.assertSame(gpu, host, call + ", " + splits + ", " + seed);
        }
      }
    }
  }

  @Test
  void errorsInRegisteredSourcesSayWhere() {
    Gpus.require(1);
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .compile(
                GraphParser.parse(
                    new SourceFile(
                        "rotate.graph",
                        """
                        graph version 1
                        op reg::rotate(Tensor input) -> Tensor  symm_mem(input)
                        graph t(x: f32[4]) {
                          r: f32[4] = reg::rotate(x)
                          return r
                        }
                        """)));
    try (var _ = CudaKernels.register("reg::rotate", "\nvoid run(", _ -> new LaunchShape(1, 32))) {
      assertThatThrownBy(() -> CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10)))
          .isInstanceOf(RunException.class)
          .hasMessageContaining("reg::rotate(2): error");
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"F32", "BF16", "F16"})
  void largeTwoShotsAgreeWithTheHost(DType dtype) {
    for (boolean inPlace : new boolean[] {true, false}) {
      var plan = GroupProgram.largeTwoShot(Gpus.ranks(), dtype, 5, inPlace);
      compare(plan, 200, false, "%s, in place: %s".formatted(dtype, inPlace));
    }
  }

  /** Columns, between whose rows others lie; what follows an all_reduce runs in its kernel. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "all_reduce     | ONE_SHOT    | _c10d_functional::all_reduce(p, 'sum', 'g')",
        "all_reduce     | TWO_SHOT    | _c10d_functional::all_reduce(p, 'sum', 'g')",
        "all_gather     | ONE_SHOT    | _c10d_functional::all_gather_into_tensor(p, RANKS, 'g')",
        "all_gather     | PUSH        | _c10d_functional::all_gather_into_tensor(p, RANKS, 'g')",
        "all_gather     | COPY_ENGINE | _c10d_functional::all_gather_into_tensor(p, RANKS, 'g')",
        "reduce_scatter | ONE_SHOT    | symplan::reduce_scatter_dim(p, 'sum', 0, RANKS, 'g')",
        "reduce_scatter | ONE_SHOT    | symplan::reduce_scatter_dim(p, 'sum', 1, RANKS, 'g')",
        "all_to_all     | ONE_SHOT    | symplan::all_to_all_dim(p, 1, 0, RANKS, 'g')",
        "all_to_all     | PUSH        | symplan::all_to_all_dim(p, 1, 0, RANKS, 'g')",
        "all_to_all     | COPY_ENGINE | symplan::all_to_all_dim(p, 1, 0, RANKS, 'g')"
      })
  void columnsAgreeWithTheHost(String kind, Variant variant, String call) {
    int ranks = Gpus.ranks();
    var text =
        """
        graph version 1
        group g = %s

        graph columns(x: bf16[1680, 5040]) {
          y = aten::neg(x)
          p = aten::slice.Tensor(y, 1, 1680, 3360)
          r = %s
          s = aten::relu(r)
          return s
        }
        """
            .formatted(
                IntStream.range(0, ranks).boxed().toList(),
                call.replace("RANKS", "" + ranks).replace('\'', '"'));
    var plan =
        Compiler.forTarget(Target.H200_X8)
            .with(
                CompileOptions.DEFAULT
                    .withObjective(Objective.TIME)
                    .withVariants(ImmutableMap.of(kind, variant)))
            .compile(GraphParser.parse(new SourceFile("columns.graph", text)));
    assertThat(plan.forRank(0).collectives().getFirst().args().getFirst().reason())
        .isEqualTo(ArgDecision.Reason.READS_ROWS);
    compare(plan, 50, false, call);
  }

  /** The ops behind reduce_scatters run in their kernels. */
  @ParameterizedTest
  @ValueSource(longs = {4, 1024})
  void sharesOfRowsAgreeWithTheHost(long rows) {
    int ranks = Gpus.ranks();
    var text =
        """
        graph version 1
        group g = %s

        graph shares(x: bf16[%s, 512]) {
          y = aten::mul.Tensor(x, x)
          r = _c10d_functional::all_reduce(y, "sum", "g")
          s = _c10d_functional::wait_tensor(r)
          n = aten::rms_norm(s, [512])
          z = aten::sub.Tensor(n, x)
          q = _c10d_functional::all_reduce(z, "avg", "g")
          t = _c10d_functional::wait_tensor(q)
          h = aten::add.Tensor(s, t)
          m = aten::amax(h, [1], True)
          o = aten::sub.Tensor(h, m)
          return o
        }
        """
            .formatted(IntStream.range(0, ranks).boxed().toList(), rows * ranks);
    var plan =
        Compiler.forTarget(Target.H200_X8)
            .with(
                CompileOptions.DEFAULT.withRewrites(
                    RewriteOptions.OFF.withSequenceParallel(RewriteOptions.Mode.ON)))
            .compile(GraphParser.parse(new SourceFile("shares.graph", text)));
    assertThat(plan.forRank(0).collectives())
        .filteredOn(collective -> collective.kind() == Kind.REDUCE_SCATTER)
        .hasSize(2)
        .anyMatch(CollectivePlan::hasEpilogue);
    compare(plan, 50, true, "rows " + rows);
  }

  static Stream<ImmutableMap<String, Variant>> mixed() {
    return Stream.of(
        ImmutableMap.of(
            "all_reduce", Variant.TWO_SHOT,
            "all_gather", Variant.PUSH,
            "reduce_scatter", Variant.ONE_SHOT,
            "all_to_all", Variant.COPY_ENGINE,
            "broadcast", Variant.ONE_SHOT,
            "collective_permute", Variant.ONE_SHOT),
        ImmutableMap.of(
            "all_reduce", Variant.ONE_SHOT_PUSH,
            "all_gather", Variant.COPY_ENGINE,
            "reduce_scatter", Variant.ONE_SHOT,
            "all_to_all", Variant.PUSH,
            "broadcast", Variant.TWO_SHOT,
            "collective_permute", Variant.PUSH),
        ImmutableMap.of(
            "all_reduce", Variant.TWO_SHOT_PUSH,
            "all_gather", Variant.NCCL_CE,
            "reduce_scatter", Variant.ONE_SHOT,
            "all_to_all", Variant.NCCL_CE,
            "broadcast", Variant.COPY_ENGINE,
            "collective_permute", Variant.COPY_ENGINE));
  }

  @ParameterizedTest
  @MethodSource("mixed")
  void repeatsToTheBit(ImmutableMap<String, Variant> variants) {
    int ranks = Gpus.ranks();
    var plan = EveryKind.plan(ranks, variants);
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, new HostBackend())) {
      for (var session : List.of(gpu, host)) {
        for (int rank = 0; rank < ranks; rank++) {
          SeededInputs.fill(session.input(rank, "x"), 5, rank, "x");
          SeededInputs.fill(session.input(rank, "y"), 5, rank, "y");
        }
        session.run();
      }
      for (int run = 0; run < RUNS; run++) {
        gpu.run();
        Bits.assertSame(gpu, host, "run " + run);
      }
    }
  }

  private static void compare(Plan plan, int runs, boolean inAnyOrder, String what) {
    try (var gpu = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10));
        var host = Session.open(plan, new HostBackend())) {
      fill(gpu, 1);
      fill(host, 1);
      host.run();
      for (int run = 0; run < runs; run++) {
        gpu.run();
        for (int rank = 0; rank < gpu.ranks(); rank++) {
          var actual = gpu.output(rank, 0).orElseThrow();
          var expected = host.output(rank, 0).orElseThrow();
          var name = "%s, rank %s, run %s".formatted(what, rank, run);
          if (inAnyOrder) {
            assertThat(TensorDiff.between(actual, expected).isWithin(actual.dtype()))
                .as(name)
                .isTrue();
          } else {
            Bits.assertSame(actual, expected, name);
          }
        }
      }
    }
  }

  private static void fill(Session session, long seed) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      SeededInputs.fill(session.input(rank, 0).orElseThrow(), seed, rank, "x");
    }
  }
}
