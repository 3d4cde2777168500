package dev.symplan.planner.comparison;

import static dev.symplan.planner.comparison.Planned.forced;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.ArgDecision.Reason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Tensors that are symmetric without a copy, argument by argument. */
class RealizationTest {
  /** The case of XLA's {@code CollectiveMemorySpaceTest.DirectUsage}, which takes two copies. */
  private static final String DIRECT =
      """
      graph g(p: f32[64, 128]) {
        r = _c10d_functional::all_reduce(p, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  /**
   * {@return the plan of a product {@code y: f32[64, 128]} and what is done with it}
   *
   * @param rest lines of the graph
   */
  private static Planned product(String rest, CompileOptions options) {
    return product(rest, options, Mode.OFF);
  }

  private static Planned product(String rest, CompileOptions options, Mode layouts) {
    return Planned.graph(
        """
        graph g(x: f32[64, 32], w: f32[32, 128]) {
          y = aten::mm(x, w)
        %s}
        """
            .formatted(rest.indent(2)),
        options,
        layouts);
  }

  private static void assertSentWhereItLies(Planned planned) {
    for (int k = 0; k < planned.rank().collectives().size(); k++) {
      assertThat(planned.operand(k, 0).realization()).isEqualTo(Realization.ZERO_COPY);
    }
    assertThat(planned.copies()).isZero();
  }

  private static void assertCopied(Planned planned, Reason reason) {
    assertThat(planned.operand(0, 0).realization()).isEqualTo(Realization.STAGED);
    assertThat(planned.operand(0, 0).reason()).isEqualTo(reason);
    assertThat(planned.copies()).isOne();
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "TWO_SHOT", "NCCL_SYMM", "NCCL"})
  void aParameterIsReducedAndReturnedWithoutACopy(Variant variant) {
    var planned = Planned.graph(DIRECT, forced("all_reduce", variant));
    assertThat(planned.copies()).isZero();
    assertThat(planned.args())
        .extracting(arg -> arg.realization())
        .doesNotContain(Realization.STAGED);
  }

  @Test
  void aParameterIsReducedAgainAndAgainWithoutACopy() {
    // XLA's LoopUsage, three turns of it.
    var planned =
        Planned.graph(
            """
            graph g(p: f32[64, 128]) {
              r1 = _c10d_functional::all_reduce(p, "sum", "tp")
              o1 = _c10d_functional::wait_tensor(r1)
              r2 = _c10d_functional::all_reduce(o1, "sum", "tp")
              o2 = _c10d_functional::wait_tensor(r2)
              r3 = _c10d_functional::all_reduce(o2, "sum", "tp")
              o3 = _c10d_functional::wait_tensor(r3)
              return o3
            }
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.copies()).isZero();
    assertThat(planned.args())
        .extracting(arg -> arg.realization())
        .containsOnly(Realization.ZERO_COPY);
    assertThat(planned.samePlace("r1", "r3")).isTrue();
    assertThat(planned.bytes()).isEqualTo(2 * 64 * 128 * 4);
  }

  @Test
  void aDonatedInputIsReducedInPlace() {
    var options = forced("all_reduce", Variant.TWO_SHOT);
    var kept = Planned.graph(DIRECT, options);
    assertThat(kept.samePlace("p", "o")).isFalse();
    assertThat(kept.bytes()).isEqualTo(2 * 64 * 128 * 4);

    var named =
        Planned.graph(DIRECT, options.withSpaces(ImmutableMap.of("p", MemorySpace.DONATED)));
    var annotated = Planned.graph(DIRECT.replace("128])", "128] @donated)"), options);
    for (var donated : new Planned[] {named, annotated}) {
      assertThat(donated.collective(0).inPlace()).isTrue();
      assertThat(donated.samePlace("p", "o")).isTrue();
      assertThat(donated.copies()).isZero();
      assertThat(donated.bytes()).isEqualTo(64 * 128 * 4);
      assertThat(donated.plan().digest()).isEqualTo(annotated.plan().digest());
    }
  }

  @Test
  void memoryOfADonatedInputIsUsedAgainAndThatOfOthersIsNot() {
    var body =
        """
        graph g(x: f32[64, 64], w: f32[64, 64]) {
          h = aten::mm(x, w)
          y = aten::mm(h, h)
          z = aten::mm(y, y)
          return z
        }
        """;
    var all = CompileOptions.DEFAULT.withInputs(MemorySpace.LOCAL);
    assertThat(Planned.graph(body, all).bytes()).isEqualTo(4 * 64 * 64 * 4);
    var donated = Planned.graph(body, all.withSpaces(ImmutableMap.of("x", MemorySpace.DONATED)));
    assertThat(donated.bytes()).isEqualTo(3 * 64 * 64 * 4);
    assertThat(donated.samePlace("w", "z")).isFalse();
  }

  @Test
  void onlyInputsCanBeDonated() {
    var named =
        forced("all_reduce", Variant.TWO_SHOT)
            .withSpaces(ImmutableMap.of("o", MemorySpace.DONATED));
    assertThatThrownBy(() -> Planned.graph(DIRECT, named))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'o' is not an input of 'g'")
        .hasMessageContaining("only inputs can be donated");
    var annotated = DIRECT.replace("  r = ", "  r: f32[64, 128] @donated = ");
    assertThatThrownBy(() -> Planned.graph(annotated, CompileOptions.DEFAULT))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'r' is annotated @donated, but is not an input of the graph");
  }

  @Test
  void theCallerDecidesForEachInputAndOutput() {
    var body =
        """
        graph g(a: f32[64, 128], b: f32[64, 128]) {
          ra = _c10d_functional::all_reduce(a, "sum", "tp")
          oa = _c10d_functional::wait_tensor(ra)
          rb = _c10d_functional::all_reduce(b, "sum", "tp")
          ob = _c10d_functional::wait_tensor(rb)
          return oa, ob
        }
        """;
    var options =
        forced("all_reduce", Variant.TWO_SHOT)
            .withSpaces(ImmutableMap.of("b", MemorySpace.EXTERNAL, "oa", MemorySpace.EXTERNAL));
    var planned = Planned.graph(body, options);
    assertThat(planned.operand(0, 0).reason()).isEqualTo(Reason.PLANNED_INPUT);
    assertThat(planned.result(0).reason()).isEqualTo(Reason.EXTERNAL_OUTPUT);
    assertThat(planned.operand(1, 0).reason()).isEqualTo(Reason.EXTERNAL_INPUT);
    assertThat(planned.result(1).realization()).isEqualTo(Realization.ZERO_COPY);
    assertThat(planned.copies()).isEqualTo(2);
    assertThat(planned.buffer("b").arena()).isEqualTo(ArenaKind.EXTERNAL_INPUT);
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"PUSH", "COPY_ENGINE", "NCCL_SYMM"})
  void resultsOfCollectivesAreSymmetric(Variant variant) {
    var planned =
        Planned.graph(
            """
            graph g(w: f32[32, 64], x: f32[16, 128]) {
              a = aten::relu(w)
              r = _c10d_functional::all_gather_into_tensor(a, 4, "tp")
              f = _c10d_functional::wait_tensor(r)
              o = aten::mm(x, f)
              return o
            }
            """,
            forced("all_gather", variant));
    assertThat(planned.result(0).realization()).isEqualTo(Realization.ZERO_COPY);
    assertThat(planned.buffer("r").symmetric()).isTrue();
    assertThat(planned.copies()).isZero();
  }

  @Test
  void viewsAndReshapesLeadToTheOpThatWrites() {
    var planned =
        product(
            """
            v = aten::view(y, [4, 16, 128])
            u = aten::unsqueeze(v, 0)
            s = aten::squeeze.dim(u, 0)
            r = _c10d_functional::all_gather_into_tensor(s, 4, "tp")
            o = _c10d_functional::wait_tensor(r)
            return o
            """,
            forced("all_gather", Variant.ONE_SHOT));
    assertSentWhereItLies(planned);
    assertThat(planned.operand(0, 0).reason()).isEqualTo(Reason.PRODUCER_WRITES);
    assertThat(planned.operand(0, 0).cause()).isEqualTo("aten::mm");
  }

  @Test
  void sliceOfALargerTensorIsSentWhereItLies() {
    var planned =
        product(
            """
            s = aten::slice.Tensor(y, 0, 16, 48)
            r = _c10d_functional::all_reduce(s, "sum", "tp")
            o = _c10d_functional::wait_tensor(r)
            return o, y
            """,
            forced("all_reduce", Variant.ONE_SHOT));
    assertSentWhereItLies(planned);
    assertThat(planned.buffer("y").symmetric()).isTrue();
    assertThat(planned.address("s") - planned.address("y")).isEqualTo(16 * 128 * 4);
  }

  @Test
  void sliceOffTheVectorGridIsCopiedAndSaysSo() {
    var planned =
        Planned.graph(
            """
            graph g(x: f32[64]) {
              y = aten::relu(x)
              s = aten::slice.Tensor(y, 0, 1, 33)
              r = _c10d_functional::all_reduce(s, "sum", "tp")
              o = _c10d_functional::wait_tensor(r)
              return o
            }
            """,
            forced("all_reduce", Variant.ONE_SHOT));
    assertCopied(planned, Reason.NOT_ALIGNED);
  }

  @Test
  void piecesOfASplitAreSentWhereTheyLie() {
    var planned =
        product(
            """
            a, b = aten::split.Tensor(y, 32)
            ra = _c10d_functional::all_reduce(a, "sum", "tp")
            oa = _c10d_functional::wait_tensor(ra)
            rb = _c10d_functional::reduce_scatter_tensor(b, "sum", 4, "tp")
            ob = _c10d_functional::wait_tensor(rb)
            return oa, ob
            """,
            CompileOptions.DEFAULT.withVariants(
                ImmutableMap.of("ra", Variant.ONE_SHOT, "rb", Variant.ONE_SHOT)));
    assertSentWhereItLies(planned);
  }

  @Test
  void piecesOfAConcatenationAreWrittenWhereACollectiveReadsThem() {
    var planned =
        Planned.graph(
            """
            graph g(x: f32[64, 32], w: f32[32, 128], v: f32[32, 128]) {
              a = aten::mm(x, w)
              b = aten::mm(x, v)
              e = aten::exp(b)
              c = aten::cat([a, e])
              r = _c10d_functional::all_reduce(c, "sum", "tp")
              o = _c10d_functional::wait_tensor(r)
              return o
            }
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.operand(0, 0).realization()).isEqualTo(Realization.ZERO_COPY);
    assertThat(planned.samePlace("a", "c")).isTrue();
    assertThat(planned.samePlace("b", "e")).isTrue();
    assertThat(planned.address("e") - planned.address("c")).isEqualTo(64 * 128 * 4);
    assertThat(planned.bytes()).isEqualTo(2 * 64 * 128 * 4);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        // A part has one place, holds until it was read for the last time, and is in one stretch.
        "aten::cat([a, a])    | o    | a",
        "aten::cat([a, b])    | o, b | b",
        "aten::cat([x, b])    | o    | x",
        "aten::cat([a, b], 1) | o    | a",
        "aten::cat([a, b], 1) | o    | b"
      })
  void piecesThatCannotBePartsOfAConcatenationAreCopied(String cat, String outputs, String piece) {
    var planned =
        Planned.graph(
            """
            graph g(x: f32[64, 32] @local, w: f32[64, 32] @local) {
              a = aten::exp(x)
              b = aten::exp(w)
              c = %s
              r = _c10d_functional::all_reduce(c, "sum", "tp")
              o = _c10d_functional::wait_tensor(r)
              return %s
            }
            """
                .formatted(cat, outputs),
            forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.overlap(piece, "c")).isFalse();
    assertThat(planned.operand(0, 0).realization()).isEqualTo(Realization.ZERO_COPY);
  }

  @Test
  void piecesAreCopiedWhereAnEarlyOneWouldHoldMemoryTooLong() {
    var planned =
        Planned.graph(
            """
            graph g(x: f32[64, 64], w: f32[64, 4096], v: f32[4096, 64]) {
              a = aten::mm(x, w)
              h = aten::mm(v, w)
              k = aten::exp(h)
              s = aten::slice.Tensor(k, 0, 0, 64)
              b = aten::mm(x, s)
              c = aten::cat([a, b])
              return c
            }
            """,
            CompileOptions.DEFAULT);
    assertThat(planned.samePlace("a", "c")).isFalse();
  }

  @Test
  void oneTensorServesSeveralGroups() {
    var planned =
        product(
            """
            a = _c10d_functional::all_reduce(y, "sum", "tp")
            oa = _c10d_functional::wait_tensor(a)
            b = _c10d_functional::all_reduce(y, "max", "row")
            ob = _c10d_functional::wait_tensor(b)
            return oa, ob
            """,
            forced("all_reduce", Variant.ONE_SHOT));
    assertSentWhereItLies(planned);
    assertThat(planned.collective(0).group()).isEqualTo("tp");
    assertThat(planned.collective(1).group()).isEqualTo("row");
    assertThat(planned.collective(0).operands()).isEqualTo(planned.collective(1).operands());
  }

  @Test
  void transposedTensorIsReducedAsItLies() {
    var planned =
        product(
            """
            t = aten::t(y)
            r: f32[128, 64][1, 128] = _c10d_functional::all_reduce(t, "sum", "tp")
            o = _c10d_functional::wait_tensor(r)
            return o
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertSentWhereItLies(planned);
  }

  @Test
  void rowsThatDoNotLieOneBehindTheOtherAreCopiedAndSaySo() {
    var planned =
        product(
            """
            t = aten::t(y)
            r = _c10d_functional::all_gather_into_tensor(t, 4, "tp")
            o = _c10d_functional::wait_tensor(r)
            return o
            """,
            forced("all_gather", Variant.ONE_SHOT));
    assertCopied(planned, Reason.NOT_CONTIGUOUS);
  }

  /** Ops on columns of {@code y}, from the first one on. */
  private static final String COLUMNS =
      """
      c = aten::slice.Tensor(y, 1, 0, %s)
      r = %s
      o = _c10d_functional::wait_tensor(r)
      return o
      """;

  private static final String REDUCED = "_c10d_functional::all_reduce(c, \"sum\", \"tp\")";
  private static final String GATHERED = "_c10d_functional::all_gather_into_tensor(c, 4, \"tp\")";

  @ParameterizedTest
  @CsvSource({
    "all_reduce, ONE_SHOT, ZERO_COPY",
    "all_reduce, TWO_SHOT, ZERO_COPY",
    "all_reduce, ONE_SHOT_PUSH, NOT_NEEDED",
    "all_reduce, TWO_SHOT_PUSH, NOT_NEEDED",
    "all_gather, ONE_SHOT, ZERO_COPY",
    "all_gather, PUSH, NOT_NEEDED",
    "all_gather, COPY_ENGINE, NOT_NEEDED"
  })
  void columnsAreReadWhereTheyLie(String kind, Variant variant, Realization realization) {
    var call = kind.equals("all_reduce") ? REDUCED : GATHERED;
    var planned = product(COLUMNS.formatted(64, call), forced(kind, variant), Mode.AUTO);
    assertThat(planned.operand(0, 0).realization()).isEqualTo(realization);
    assertThat(planned.operand(0, 0).reason()).isEqualTo(Reason.READS_ROWS);
    assertThat(planned.operand(0, 0).cause()).isEqualTo("y");
    assertThat(planned.copies()).isZero();
    assertThat(planned.collective(0).inPlace()).isFalse();
  }

  /** The result's rows would lie over others, which are still to be read. */
  @Test
  void rowsInAnotherOrderAreNotReducedInPlace() {
    var planned =
        product(
            """
            v = aten::view(y, [64, 2, 64])
            p = aten::permute(v, [1, 0, 2])
            r: f32[2, 64, 64][4096, 64, 1] = _c10d_functional::all_reduce(p, "sum", "tp")
            o = _c10d_functional::wait_tensor(r)
            return o
            """,
            forced("all_reduce", Variant.ONE_SHOT_PUSH),
            Mode.AUTO);
    assertThat(planned.operand(0, 0).reason()).isEqualTo(Reason.READS_ROWS);
    assertThat(planned.collective(0).inPlace()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"NCCL_SYMM", "NCCL"})
  void columnsAreCopiedForVariantsThatReadNoRows(Variant variant) {
    var planned = product(COLUMNS.formatted(64, REDUCED), forced("all_reduce", variant), Mode.AUTO);
    assertCopied(planned, Reason.NOT_CONTIGUOUS);
  }

  @Test
  void columnsAreCopiedWhereTheCallerOrTheirSizeSaysSo() {
    var options = forced("all_reduce", Variant.ONE_SHOT);
    var wide = COLUMNS.formatted(64, REDUCED);
    var narrow = COLUMNS.formatted(16, REDUCED);
    assertCopied(product(wide, options, Mode.OFF), Reason.NOT_CONTIGUOUS);
    assertCopied(product(narrow, options, Mode.AUTO), Reason.NOT_CONTIGUOUS);
    assertThat(product(narrow, options, Mode.ON).copies()).isZero();
  }

  /** Columns that are copied no longer need the others, which take more than the copy. */
  @Test
  void columnsOfALargeTensorAreReadWhereTheyLieOnlyForTimeThatCounts() {
    var graph =
        """
        graph g(x: f32[2048, 4096], w: f32[4096, 8192]) {
          y = aten::mm(x, w)
          c = aten::slice.Tensor(y, 1, 0, 1024)
          r = _c10d_functional::all_gather_into_tensor(c, 4, "tp")
          return r
        }
        """;
    long mebibyte = 1 << 20;
    var balanced = Planned.graph(graph, CompileOptions.DEFAULT, Mode.AUTO);
    assertCopied(balanced, Reason.NOT_CONTIGUOUS);
    assertThat(balanced.bytes()).isEqualTo((64 + 8) * mebibyte);
    var fast =
        Planned.graph(graph, CompileOptions.DEFAULT.withObjective(Objective.TIME), Mode.AUTO);
    assertThat(fast.copies()).isZero();
    assertThat(fast.bytes()).isEqualTo((64 + 32) * mebibyte);
  }

  @Test
  void operandThatIsReturnedIsKept() {
    var planned =
        product(
            """
            r = _c10d_functional::all_reduce(y, "sum", "tp")
            o = _c10d_functional::wait_tensor(r)
            return o, y
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertSentWhereItLies(planned);
    assertThat(planned.collective(0).inPlace()).isFalse();
    assertThat(planned.samePlace("y", "o")).isFalse();
    assertThat(planned.buffer("y").last()).isEqualTo(planned.rank().steps().size());
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "TWO_SHOT", "NCCL_SYMM", "NCCL"})
  void reductionIsInPlaceWhereItsVariantReadsBeforeItWrites(Variant variant) {
    var planned =
        product(
            """
            r = _c10d_functional::all_reduce(y, "sum", "tp")
            o = _c10d_functional::wait_tensor(r)
            return o
            """,
            forced("all_reduce", variant));
    // Peers read a one-shot operand while the result is written.
    boolean legal = variant != Variant.ONE_SHOT;
    assertThat(planned.collective(0).inPlace()).isEqualTo(legal);
    assertThat(planned.samePlace("y", "r")).isEqualTo(legal);
    assertThat(planned.bytes()).isEqualTo((legal ? 1 : 2) * 64 * 128 * 4);
  }

  @Test
  void resultOfACollectiveIsTheOperandOfTheNext() {
    // The chain of the 70B model in XLA's benchmarks: all-reduce, slice, all-reduce.
    var planned =
        product(
            """
            a = _c10d_functional::all_reduce(y, "sum", "tp")
            oa = _c10d_functional::wait_tensor(a)
            s = aten::slice.Tensor(oa, 0, 16, 32)
            b = _c10d_functional::all_reduce(s, "sum", "row")
            ob = _c10d_functional::wait_tensor(b)
            return ob
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.args())
        .extracting(arg -> arg.realization())
        .containsOnly(Realization.ZERO_COPY);
    assertThat(planned.operand(1, 0).reason()).isEqualTo(Reason.COLLECTIVE_RESULT);
    assertThat(planned.copies()).isZero();
  }

  @Test
  void demandsThatContradictAreSettledByACopy() {
    var planned =
        Planned.graph(
            """
            graph g(x: f32[64, 128] @local) {
              r = _c10d_functional::all_reduce(x, "sum", "tp")
              o = _c10d_functional::wait_tensor(r)
              return o
            }
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.operand(0, 0).realization()).isEqualTo(Realization.STAGED);
    assertThat(planned.copies()).isOne();
    assertThat(planned.buffer("x").symmetric()).isFalse();
  }

  @Test
  void aCopyIsPutInOnlyWhereItPays() {
    var body =
        """
        graph g(x: f32[%s]) {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    for (long elements : new long[] {1 << 10, 1 << 16, 1 << 20, 1 << 24}) {
      var planned =
          Planned.graph(
              body.formatted(elements), CompileOptions.DEFAULT.withInputs(MemorySpace.EXTERNAL));
      var chosen = planned.collective(0).verdict();
      for (var verdict : planned.collective(0).verdicts()) {
        if (verdict.reason().eligible()) {
          boolean copies =
              VariantSpec.of(planned.collective(0).kind(), verdict.variant())
                  .needsSymmetricOperand();
          assertThat(verdict.stagingMicros() > 0).as("%s", verdict).isEqualTo(copies);
          assertThat(chosen.totalMicros()).isLessThanOrEqualTo(verdict.totalMicros());
        }
      }
      assertThat(planned.copies() > 0).isEqualTo(chosen.stagingMicros() > 0);
    }
  }

  @Test
  void aCopyIsWeighedAgainstThePlainLibrary() {
    // 1 GiB: a copy in and the better variant, or none and plain NCCL; whichever is less.
    var body =
        """
        graph g(x: f32[268435456]) {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    var planned = Planned.graph(body, CompileOptions.DEFAULT.withInputs(MemorySpace.EXTERNAL));
    var staged = planned.verdict(0, Variant.TWO_SHOT);
    var plain = planned.verdict(0, Variant.NCCL);
    assertThat(staged.stagingMicros()).isPositive();
    assertThat(plain.stagingMicros()).isZero();
    assertThat(planned.collective(0).verdict().totalMicros())
        .isLessThanOrEqualTo(Math.min(staged.totalMicros(), plain.totalMicros()));
    assertThat(planned.collective(0).variant() == Variant.NCCL).isEqualTo(planned.copies() == 0);
  }

  @Test
  void customOpsGetOperandsAndResultsInSymmetricMemory() {
    var planned =
        Planned.of(
            """
            graph version 1

            group ep = [0, 1, 2, 3]

            op cmp::exchange(Tensor input, str pg) -> Tensor  symm_mem(input)
            op cmp::route(Tensor x, str mode, str where) -> (Tensor out, Tensor)  \
            symm_mem(x) symm_mem_results(out) group(where)

            graph g(x: f32[16, 64] @external) {
              y: f32[16, 64] = cmp::exchange(x, "ep")
              z: f32[16, 64], n: i64[4] = cmp::route(y, "fast", "ep")
              return z, n
            }
            """
                .replace("\\\n", ""),
            CompileOptions.DEFAULT);
    // A graph input that the caller keeps is copied, rather than warned of.
    assertThat(planned.operand(0, 0).reason()).isEqualTo(Reason.EXTERNAL_INPUT);
    assertThat(planned.copies()).isOne();
    // The result of one custom op is the operand of another.
    assertThat(planned.operand(1, 0).realization()).isEqualTo(Realization.ZERO_COPY);
    assertThat(planned.buffer("y").symmetric()).isTrue();
    // A result can be declared.
    assertThat(planned.result(1).realization()).isEqualTo(Realization.ZERO_COPY);
    assertThat(planned.buffer("z").symmetric()).isTrue();
    assertThat(planned.buffer("n").symmetric()).isFalse();
  }

  @ParameterizedTest
  @MethodSource("capturedGraphs")
  void everyTensorOfACollectiveHasAReason(Path file) {
    var plan = Compiler.forDefaultTarget().with(CompileOptions.DEFAULT.withRanks(8)).compile(file);
    var planned = new Planned(plan);
    assertThat(planned.args()).isNotEmpty();
    for (var arg : planned.args()) {
      assertThat(arg.cause()).isNotEmpty();
      boolean needed = arg.reason() != Reason.VARIANT_READS_ANYWHERE;
      assertThat(arg.realization() != Realization.NOT_NEEDED).as("%s", arg).isEqualTo(needed);
    }
  }

  static List<Path> capturedGraphs() throws IOException {
    var folder = Path.of(System.getProperty("symplan.root", ".."), "samples", "cases", "plan");
    try (var files = Files.list(folder)) {
      return files.filter(file -> file.toString().endsWith(".fx.txt")).sorted().toList();
    }
  }
}
