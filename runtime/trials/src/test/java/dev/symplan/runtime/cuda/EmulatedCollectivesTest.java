package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.ReadAhead;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The kernels that reach peers, all ranks' threads at once in an order that is drawn, against the
 * host backend to the bit. Other orders with {@code -Dsymplan.seed=N}.
 */
@Order(1) // It takes longest, so the others run beside it.
class EmulatedCollectivesTest {
  private static final long SEED = Fuzz.seed(1);

  /** The ranks go through their programs so often without waiting for each other. */
  private static final int TIMES = 3;

  /** More than the small programs here take, if nobody waits for ever. */
  private static final long MAX_TURNS = 8_000_000;

  /** The orders of threads of which one must show what is wrong. */
  private static final int ORDERS = 8;

  private static final int SEEDS = Integer.getInteger("symplan.graphs", 2);

  /** Another text for a part of a kernel. */
  private record Change(String part, String other) {
    static Change without(String part) {
      return new Change(part, "");
    }

    String of(String text) {
      return text.replace(part, other);
    }
  }

  private static final ImmutableListMultimap<Variant, Change> WRONG_KERNELS =
      ImmutableListMultimap.<Variant, Change>builder()
          .put(Variant.ONE_SHOT, Change.without("meet(args, ++meeting, false);"))
          .putAll(
              Variant.ONE_SHOT_PUSH,
              new Change("/ TICKS % 2 * args.half", "* 0"),
              Change.without("clear(args.slots[round][r] + half, i);"),
              Change.without("x->word[0] != EMPTY &&"))
          .put(Variant.TWO_SHOT, Change.without("meet(args, ++meeting, PUSHES);"))
          .put(Variant.TWO_SHOT_PUSH, Change.without("clear(args.slots[round][r] + half, i);"))
          .putAll(
              Variant.MULTIMEM,
              Change.without("meet(args, ++meeting, false);"),
              Change.without("meet(args, ++meeting, PUSHES);"),
              Change.without("asm volatile(\"fence.proxy.alias;\" ::: \"memory\");"))
          .put(Variant.MULTIMEM_ONE_SHOT, Change.without("meet(args, ++meeting, false);"))
          .build();

  private static final ImmutableListMultimap<Variant, Change> WRONG_EPILOGUES =
      ImmutableListMultimap.<Variant, Change>builder()
          .putAll(
              Variant.ONE_SHOT,
              Change.without("meet(args, ++meeting, PUSHES);"),
              Change.without("meet(args, ++meeting, false);"),
              new Change("first + (long long)gridDim.x * TOGETHER, ahead", "first, ahead"))
          .putAll(
              Variant.ONE_SHOT_PUSH,
              Change.without("clear(args.slots[round][r] + half, i);"),
              Change.without("held[at] = result.words;"),
              new Change("if (STORED)", "if (false)"))
          .putAll(
              Variant.TWO_SHOT,
              Change.without("meet(args, ++meeting, true);"),
              Change.without("meet(args, ++meeting, false);"),
              new Change("(first * ROW + at)", "(turn * TOGETHER * ROW + at)"))
          .putAll(
              Variant.TWO_SHOT_PUSH,
              Change.without("clear(args.slots[round][r] + half, i);"),
              Change.without("held[at] = result.words;"),
              new Change("if (STORED)", "if (false)"),
              new Change("slice * args.slice + i", "i"),
              new Change("peer * args.slice + i", "i"),
              new Change("wanted[r] = r == slice;", "wanted[r] = r != args.self;"))
          .build();

  private final GroupProgram program = new GroupProgram();

  private Plan plan(int ranks, Kind kind, Variant variant) {
    return program.plan(ranks, Ascii.toLowerCase(kind.name()), variant);
  }

  @ParameterizedTest
  @CsvSource({
    "ONE_SHOT_PUSH, 2", "ONE_SHOT_PUSH, 3", "ONE_SHOT_PUSH, 4",
    "TWO_SHOT_PUSH, 2", "TWO_SHOT_PUSH, 3", "TWO_SHOT_PUSH, 4"
  })
  void pushes(Variant variant, int ranks) {
    for (int elements : new int[] {1, 1037, 66}) {
      for (var dtype : List.of(DType.BF16, DType.F32, DType.I64)) {
        for (var op : List.of("sum", "max")) {
          var input = program.input("%s[%s]".formatted(dtype.shortName(), elements));
          program.output(program.collective("all_reduce(%s, \"%s\", \"g\")".formatted(input, op)));
        }
      }
    }
    // Slices begin among the rows.
    var wide = program.op("aten::neg(%s)".formatted(program.input("bf16[5, 96]")));
    var columns = program.op("aten::slice.Tensor(%s, 1, 8, 72)".formatted(wide));
    program.output(program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(columns)));
    check(
        program.plan(
            ranks,
            CompileOptions.DEFAULT
                .withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON))
                .withVariants(ImmutableMap.of("all_reduce", variant))));
  }

  @ParameterizedTest
  @CsvSource({
    "ALL_REDUCE, ONE_SHOT",
    "ALL_REDUCE, TWO_SHOT",
    "ALL_GATHER, ONE_SHOT",
    "ALL_GATHER, PUSH",
    "REDUCE_SCATTER, ONE_SHOT",
    "ALL_TO_ALL, ONE_SHOT",
    "ALL_TO_ALL, PUSH",
    "BROADCAST, ONE_SHOT",
    "BROADCAST, TWO_SHOT",
    "BROADCAST, COPY_ENGINE"
  })
  void meetings(Kind kind, Variant variant) {
    int ranks = 3;
    for (int rows : new int[] {1, 37}) {
      var input = program.input("bf16[%s, 5]".formatted(rows * ranks));
      var equal = "[%1$s, %1$s, %1$s]".formatted(rows);
      program.output(
          program.collective(
              switch (kind) {
                case ALL_REDUCE -> "all_reduce(%s, \"avg\", \"g\")".formatted(input);
                case ALL_GATHER -> "all_gather_into_tensor(%s, 3, \"g\")".formatted(input);
                case REDUCE_SCATTER ->
                    "reduce_scatter_tensor(%s, \"sum\", 3, \"g\")".formatted(input);
                case ALL_TO_ALL ->
                    "all_to_all_single(%s, %s, %s, \"g\")".formatted(input, equal, equal);
                case BROADCAST -> "broadcast(%s, 1, \"g\")".formatted(input);
                case COLLECTIVE_PERMUTE, CUSTOM -> throw new IllegalArgumentException();
              }));
    }
    check(plan(ranks, kind, variant));
  }

  /** A ring, a chain, one pair, a rank that sends to itself, and nobody who sends. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "PUSH", "COPY_ENGINE"})
  void pairs(Variant variant) {
    for (var pairs :
        List.of(
            "[[0, 1], [1, 2], [2, 0]]", "[[0, 1], [1, 2]]", "[[2, 0]]", "[[1, 1], [0, 2]]", "[]")) {
      for (var type : List.of("bf16[37, 5]", "f32[64]", "u8[3]", "f32[0, 4]", "i64[40000]")) {
        var input = program.input(type);
        var permuted =
            program.op("symplan::collective_permute(%s, %s, \"g\")".formatted(input, pairs));
        program.output(program.op("_c10d_functional::wait_tensor(%s)".formatted(permuted)));
      }
    }
    check(plan(3, Kind.COLLECTIVE_PERMUTE, variant));
  }

  /** Slices of rows that are whole vectors, of rows that are not, and of rows of one element. */
  @ParameterizedTest
  @CsvSource({
    "ALL_GATHER, ONE_SHOT",
    "ALL_GATHER, PUSH",
    "ALL_GATHER, COPY_ENGINE",
    "REDUCE_SCATTER, ONE_SHOT",
    "ALL_TO_ALL, ONE_SHOT",
    "ALL_TO_ALL, PUSH",
    "ALL_TO_ALL, COPY_ENGINE"
  })
  void rows(Kind kind, Variant variant) {
    for (var dtype : List.of("f32", "bf16", "u8")) {
      for (var sizes : List.of("6, 24, 96", "3, 15, 3", "6, 6, 36")) {
        var input = program.input("%s[%s]".formatted(dtype, sizes));
        for (int dim : new int[] {1, 2}) {
          var call =
              switch (kind) {
                case ALL_GATHER -> "all_gather_dim(%s, %s, 3, \"g\")".formatted(input, dim);
                case REDUCE_SCATTER ->
                    "reduce_scatter_dim(%s, \"max\", %s, 3, \"g\")".formatted(input, dim);
                case ALL_TO_ALL ->
                    "all_to_all_dim(%s, %s, %s, 3, \"g\")".formatted(input, dim, 2 * dim % 3);
                case ALL_REDUCE, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM ->
                    throw new IllegalArgumentException();
              };
          program.output(program.op("symplan::" + call));
        }
        if (kind == Kind.ALL_TO_ALL) {
          program.output(
              program.op("symplan::all_to_all_dim(%s, 0, 2, 3, \"g\")".formatted(input)));
          program.output(
              program.op("symplan::all_to_all_dim(%s, 1, 1, 3, \"g\")".formatted(input)));
        }
      }
    }
    check(plan(3, kind, variant));
  }

  /** A product is written between the rows of other ranks, from where it is gathered. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"PUSH", "COPY_ENGINE"})
  void productsInRows(Variant variant) {
    var left = program.input("i32[37, 5]");
    var right = program.input("i32[5, 24]");
    var product = program.op("aten::mm(%s, %s)".formatted(left, right));
    program.output(program.op("symplan::all_gather_dim(%s, 1, 3, \"g\")".formatted(product)));
    var plan = plan(3, Kind.ALL_GATHER, variant);
    var operand = plan.forRank(0).collectives().getFirst().operands().getFirst();
    assertThat(plan.forRank(0).placements().get(operand).stride()).isEqualTo(24 * 4);
    check(plan);
  }

  /** One kernel computes elements and stores them to the peers. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void elementwiseOpsStoreTheirResultsToPeers(int dim) {
    var value = program.input("f32[128, 264]");
    var scale = program.input("f32[264]");
    for (var op :
        List.of(
            "aten::_to_copy(%s, dtype=torch.bfloat16)",
            "aten::mul.Tensor(%s, 1.5)", "aten::mul.Tensor(%s, " + scale + ")")) {
      var made = program.op(op.formatted(value));
      var whole = program.op("symplan::all_gather_dim(%s, %s, 3, \"g\")".formatted(made, dim));
      program.output(program.op("aten::neg(%s)".formatted(whole)));
    }
    var plan = plan(3, Kind.ALL_GATHER, Variant.PUSH);
    var steps = DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps();
    assertThat(steps).hasSize(6);
    check(plan);
  }

  /**
   * A residual and what normalizes it, in the kernel of the collective: several results, sums that
   * are read later, and ops of one element.
   */
  @ParameterizedTest
  @CsvSource({"ONE_SHOT, 2", "ONE_SHOT, 3", "ONE_SHOT_PUSH, 2", "ONE_SHOT_PUSH, 3"})
  void epilogues(Variant variant, int ranks) {
    for (var type : List.of("bf16[5, 64]", "f32[37, 100]", "bf16[2, 3, 520]", "f16[70, 32]")) {
      var width = type.replaceAll(".* |]", "");
      var dtype = type.substring(0, type.indexOf('['));
      var part = program.input(type);
      var residual = program.input(type);
      var weight = program.input("%s[%s]".formatted(dtype, width));
      var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(part));
      var sum = program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(half));
      var added = program.op("aten::add.Tensor(%s, %s)".formatted(residual, sum));
      var normed = program.norm(added, weight);
      var again =
          program.collective(
              "all_reduce(%s, \"avg\", \"g\")"
                  .formatted(program.op("aten::mul.Scalar(%s, 2.0)".formatted(normed))));
      var kept = program.op("aten::relu(%s)".formatted(again));
      program.output(program.op("aten::add.Tensor(%s, %s)".formatted(added, kept)));
      program.output(program.op("aten::neg(%s)".formatted(again)));
    }
    var plan = plan(ranks, Kind.ALL_REDUCE, variant);
    assertThat(plan.forRank(0).collectives()).allMatch(CollectivePlan::hasEpilogue);
    var steps = DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps();
    assertThat(steps.stream().flatMap(step -> step.launches().stream()))
        .filteredOn(launch -> !launch.shares().isEmpty())
        .hasSameSizeAs(plan.forRank(0).collectives());
    check(plan);
  }

  /** Each rank takes the rows that it gets through the ops. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void epiloguesOfShares(int ranks) {
    for (var shape : List.of("bf16[%s, 64]", "f32[%s, 100]", "f16[%s, 3, 520]")) {
      var type = shape.formatted(5 * ranks);
      var width = type.replaceAll(".* |]", "");
      var dtype = type.substring(0, type.indexOf('['));
      var residual = program.input(shape.formatted(5));
      var weight = program.input("%s[%s]".formatted(dtype, width));
      var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(program.input(type)));
      var sum =
          program.collective(
              "reduce_scatter_tensor(%s, \"sum\", %s, \"g\")".formatted(half, ranks));
      var added = program.op("aten::add.Tensor(%s, %s)".formatted(residual, sum));
      program.output(added);
      program.output(program.norm(added, weight));
      program.output(program.op("aten::flip(%s, [0])".formatted(sum)));
    }
    var plan = plan(ranks, Kind.REDUCE_SCATTER, Variant.ONE_SHOT);
    assertThat(plan.forRank(0).collectives()).allMatch(CollectivePlan::hasEpilogue);
    var steps = DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps();
    assertThat(steps.stream().flatMap(step -> step.launches().stream()))
        .filteredOn(launch -> !launch.shares().isEmpty())
        .hasSize(3);
    check(plan);
  }

  /** Slices that one block takes in two turns, and that two blocks take; and others. */
  @ParameterizedTest
  @CsvSource({"TWO_SHOT, 2", "TWO_SHOT, 3", "TWO_SHOT_PUSH, 2", "TWO_SHOT_PUSH, 3"})
  void epiloguesOfSlices(Variant variant, int ranks) {
    for (var shape :
        List.of(
            "bf16[%s, 64]".formatted(32 * ranks),
            "bf16[2, %s, 4096]".formatted(ranks),
            "f16[%s, 64]".formatted(ranks))) {
      var part = program.input(shape);
      var residual = program.input(shape);
      var weight =
          program.input(shape.substring(0, shape.indexOf('[') + 1) + shape.replaceAll(".*[ ]", ""));
      var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(part));
      var sum = program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(half));
      var added = program.op("aten::add.Tensor(%s, %s)".formatted(residual, sum));
      var normed = program.norm(added, weight);
      var again =
          program.collective(
              "all_reduce(%s, \"avg\", \"g\")"
                  .formatted(program.op("aten::mul.Scalar(%s, 2.0)".formatted(normed))));
      var kept = program.op("aten::relu(%s)".formatted(again));
      program.output(program.op("aten::add.Tensor(%s, %s)".formatted(added, kept)));
      program.output(program.op("aten::neg(%s)".formatted(again)));
    }
    var plan = plan(ranks, Kind.ALL_REDUCE, variant);
    assertThat(plan.forRank(0).collectives()).allMatch(CollectivePlan::hasEpilogue);
    var steps = DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps();
    assertThat(steps.stream().flatMap(step -> step.launches().stream()))
        .filteredOn(launch -> !launch.shares().isEmpty())
        .hasSize(4);
    check(plan);
  }

  /** Ops in the kernel of a collective give the bits that they give in one of their own. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "ONE_SHOT_PUSH", "TWO_SHOT", "TWO_SHOT_PUSH"})
  void epiloguesGiveTheSameBits(Variant variant) {
    for (var type : List.of("bf16[8, 512]", "f32[16, 200]")) {
      var residual = program.input(type);
      var half = program.op("aten::mul.Scalar(%s, 0.3)".formatted(program.input(type)));
      var sum = program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(half));
      var wide =
          program.op(
              "aten::_to_copy(%s, dtype=torch.float32)"
                  .formatted(program.op("aten::add.Tensor(%s, %s)".formatted(residual, sum))));
      var mean = program.op("aten::mean.dim(%s, [-1], True)".formatted(wide));
      program.output(program.op("aten::sub.Tensor(%s, %s)".formatted(wide, mean)));
      program.output(program.op("aten::amax(%s, [-1], True)".formatted(wide)));
    }
    var with = plan(2, Kind.ALL_REDUCE, variant);
    var without =
        program.plan(2, GroupProgram.asWritten("all_reduce", variant).withEpilogues(false));
    assertThat(with.forRank(0).collectives()).allMatch(CollectivePlan::hasEpilogue);
    assertThat(without.forRank(0).collectives()).noneMatch(CollectivePlan::hasEpilogue);
    assertThat(DeviceLowering.lower(Lowering.lower(with)).getFirst().steps())
        .flatExtracting(DeviceStep::launches)
        .filteredOn(launch -> !launch.shares().isEmpty())
        .hasSize(2);
    var fused = new EmulatedGpus(Lowering.lower(with), TIMES, text -> text);
    var apart = new EmulatedGpus(Lowering.lower(without), TIMES, text -> text);
    fused.assertAs(apart, Lowering.lower(with), Lowering.lower(without), SEED, 50 * MAX_TURNS);
  }

  /** Wrong epilogues, which the tests of epilogues must notice. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "ONE_SHOT_PUSH", "TWO_SHOT", "TWO_SHOT_PUSH"})
  void wrongKernelsOfEpiloguesAreFound(Variant variant) {
    var value =
        program.input(
            VariantSpec.of(Kind.ALL_REDUCE, variant).slicesBeforeEpilogue()
                ? "bf16[48, 64]"
                : "bf16[40, 64]");
    for (int i = 0; i < 3; i++) {
      // In a kernel of its own, which writes over what peers may still read.
      var turned = program.op("aten::flip(%s, [0])".formatted(value));
      var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(turned));
      var sum = program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(half));
      value = program.op("aten::add.Tensor(%s, %s)".formatted(value, sum));
      program.output(program.op("aten::neg(%s)".formatted(sum)));
    }
    program.output(value);
    checkAndFind(plan(3, Kind.ALL_REDUCE, variant), WRONG_EPILOGUES.get(variant));
  }

  /** One kernel takes tensors of different sizes, each from another block on. */
  @ParameterizedTest
  @CsvSource({"ALL_GATHER, PUSH", "ALL_REDUCE, ONE_SHOT", "ALL_REDUCE, TWO_SHOT"})
  void severalTensorsInOneKernel(Kind kind, Variant variant) {
    var inputs =
        Stream.of("bf16[3, 1000]", "bf16[5]", "bf16[40, 999]", "bf16[0]", "bf16[64]")
            .map(program::input)
            .toList();
    var results =
        program.ops(
            inputs.size(),
            kind == Kind.ALL_GATHER
                ? "_c10d_functional::all_gather_into_tensor_coalesced(%s, 3, \"g\")"
                    .formatted(inputs)
                : "_c10d_functional::all_reduce_coalesced(%s, \"sum\", \"g\")".formatted(inputs));
    results.forEach(
        result ->
            program.output(program.op("_c10d_functional::wait_tensor(%s)".formatted(result))));
    var plan = plan(3, kind, variant);
    assertThat(DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps()).hasSize(1);
    check(plan);
  }

  /** With a rest that does not fill 16 bytes, and with slices that do not begin at 16 bytes. */
  @ParameterizedTest
  @CsvSource({
    "ALL_REDUCE, MULTIMEM, 2",
    "ALL_REDUCE, MULTIMEM, 4",
    "ALL_REDUCE, MULTIMEM_ONE_SHOT, 2",
    "ALL_REDUCE, MULTIMEM_ONE_SHOT, 4",
    "REDUCE_SCATTER, MULTIMEM, 3",
    "ALL_GATHER, MULTIMEM, 3",
    "BROADCAST, MULTIMEM, 3"
  })
  void multimem(Kind kind, Variant variant, int ranks) {
    for (var dtype : List.of(DType.F32, DType.F16, DType.BF16)) {
      for (int rows : new int[] {1, 37, 64}) {
        var input = program.input("%s[%s, 5]".formatted(dtype.shortName(), rows * ranks));
        // Stored by a kernel, and read by the next one through other addresses.
        var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(input));
        program.output(
            program.collective(
                switch (kind) {
                  case ALL_REDUCE -> "all_reduce(%s, \"sum\", \"g\")".formatted(half);
                  case ALL_GATHER -> "all_gather_into_tensor(%s, %s, \"g\")".formatted(half, ranks);
                  case REDUCE_SCATTER ->
                      "reduce_scatter_tensor(%s, \"sum\", %s, \"g\")".formatted(half, ranks);
                  case BROADCAST -> "broadcast(%s, 1, \"g\")".formatted(half);
                  case ALL_TO_ALL, COLLECTIVE_PERMUTE, CUSTOM ->
                      throw new IllegalArgumentException();
                }));
      }
    }
    check(plan(ranks, kind, variant));
  }

  /** Slices of more vectors than there are threads: these are combined first and copied then. */
  @Test
  void twoShotOfManyVectors() {
    var plan = GroupProgram.largeTwoShot(2, DType.BF16, 1, true);
    assertThat(plan.forRank(0).collectives()).allMatch(CollectivePlan::inPlace);
    check(plan);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void registeredOps(int ranks) {
    try (var _ = RegisteredKernels.register()) {
      check(RegisteredKernels.plan(ranks));
    }
  }

  @Test
  void registeredOpsNeedTheirBarriers() {
    try (var _ = RegisteredKernels.register()) {
      var plan = RegisteredKernels.plan(3);
      for (var barrier : List.of("  group.barrier();\n  registered", "  group.barrier();\n  for")) {
        assertThatThrownBy(
                () ->
                    check(
                        plan,
                        text -> text.replace(barrier, barrier.replace("group.barrier();", "")),
                        50 * MAX_TURNS))
            .isInstanceOf(AssertionError.class)
            .hasMessageContaining("seed");
      }
    }
  }

  /** Wrong kernels, which the tests above must notice. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {
        "ONE_SHOT",
        "ONE_SHOT_PUSH",
        "TWO_SHOT",
        "TWO_SHOT_PUSH",
        "MULTIMEM",
        "MULTIMEM_ONE_SHOT"
      })
  void wrongKernelsAreFound(Variant variant) {
    var value = program.input("bf16[300]");
    for (int i = 0; i < 4; i++) {
      var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(value));
      value = program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(half));
    }
    program.output(value);
    checkAndFind(plan(3, Kind.ALL_REDUCE, variant), WRONG_KERNELS.get(variant));
  }

  /** Blocks that read ahead change nothing; here, they end at once. */
  @ParameterizedTest
  @CsvSource({
    "ONE_SHOT, 2, 5",
    "ONE_SHOT_PUSH, 2, 5",
    "ONE_SHOT_PUSH, 3, 16",
    "TWO_SHOT, 2, 8",
    "TWO_SHOT, 3, 5"
  })
  void readingAhead(Variant variant, int ranks, int tokens) {
    checkReadingAhead(variant, ranks, tokens, text -> text);
  }

  /** Blocks of the kernel's own that end as those do that read ahead. */
  @Test
  void ownBlocksThatOnlyReadAheadAreFound() {
    assertThatThrownBy(
            () ->
                checkReadingAhead(
                    Variant.ONE_SHOT_PUSH,
                    2,
                    5,
                    text -> text.replaceAll("blockIdx\\.x >= \\d+", "blockIdx.x >= 0")))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("seed");
  }

  /** Products are left out: they are not what is emulated here. */
  private static void checkReadingAhead(
      Variant variant, int ranks, int tokens, UnaryOperator<String> change) {
    var executable = Lowering.lower(GroupProgram.normsAndProducts(ranks, tokens, variant));
    var programs =
        ReadAhead.in(DeviceLowering.lower(executable), executable).stream()
            .map(EmulatedCollectivesTest::withoutProducts)
            .collect(ImmutableList.toImmutableList());
    assertThat(programs.getFirst().steps())
        .flatExtracting(DeviceStep::launches)
        .filteredOn(launch -> launch.kernel().text().contains("do_others(args, "))
        .hasSize(3);
    var gpus = new EmulatedGpus(executable, programs, TIMES, change);
    var norms = GroupProgram.norms(ranks, tokens, variant);
    try (var host = Session.open(norms, new HostBackend())) {
      for (long seed = SEED; seed < SEED + SEEDS; seed++) {
        gpus.assertAsHost(host, executable, seed, 50 * MAX_TURNS, "", 2);
      }
    }
  }

  private static DeviceProgram withoutProducts(DeviceProgram program) {
    return new DeviceProgram(
        program.rank(),
        program.steps().stream()
            .filter(step -> step.launches().stream().allMatch(own -> own.streamed().isEmpty()))
            .collect(ImmutableList.toImmutableList()),
        program.begins(),
        program.events(),
        program.pads());
  }

  /** Each change alone must be found, and nothing without one. */
  private static void checkAndFind(Plan plan, List<Change> changes) {
    check(plan, text -> text, MAX_TURNS);
    assertThat(changes).isNotEmpty().allSatisfy(change -> assertWrong(plan, change::of));
  }

  /** In one of some orders of the threads, kernels do something else. */
  private static void assertWrong(Plan plan, UnaryOperator<String> change) {
    var executable = Lowering.lower(plan);
    var gpus = new EmulatedGpus(executable, TIMES, change);
    assertThatThrownBy(
            () -> {
              for (long seed = SEED; seed < SEED + ORDERS; seed++) {
                try (var host = Session.open(plan, new HostBackend())) {
                  gpus.assertAsHost(host, executable, seed, MAX_TURNS, "");
                }
              }
            })
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("seed");
  }

  private static void check(Plan plan) {
    check(plan, text -> text, 50 * MAX_TURNS);
  }

  private static void check(Plan plan, UnaryOperator<String> change, long limit) {
    var executable = Lowering.lower(plan);
    var gpus = new EmulatedGpus(executable, TIMES, change);
    try (var host = Session.open(plan, new HostBackend())) {
      for (long seed = SEED; seed < SEED + SEEDS; seed++) {
        gpus.assertAsHost(host, executable, seed, limit, "");
      }
    }
  }
}
