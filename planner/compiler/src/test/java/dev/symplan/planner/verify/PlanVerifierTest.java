package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.PlanEdits.at;
import static dev.symplan.planner.verify.PlanEdits.lives;
import static dev.symplan.planner.verify.VerifierFixtures.ASYNC;
import static dev.symplan.planner.verify.VerifierFixtures.CHAIN;
import static dev.symplan.planner.verify.VerifierFixtures.RANKS;
import static dev.symplan.planner.verify.VerifierFixtures.compile;
import static dev.symplan.planner.verify.VerifierFixtures.compileReadingRows;
import static dev.symplan.planner.verify.VerifierFixtures.first;
import static dev.symplan.planner.verify.VerifierFixtures.rules;
import static dev.symplan.planner.verify.VerifierFixtures.variants;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Plans broken in one place each. */
class PlanVerifierTest {
  @Test
  void plansOfTheCompilerBreakNothing() {
    for (var text : List.of(CHAIN, ASYNC, RANKS)) {
      assertThat(PlanVerifier.verify(compile(text))).isEmpty();
      assertThat(PlanVerifier.verify(PlanEdits.of(compile(text)).plan())).isEmpty();
    }
  }

  @Test
  void stepOfAnOpThatIsNotThere() {
    var plan = PlanEdits.of(compile(CHAIN)).steps(s -> s.add(new Step.Compute(99))).plan();
    assertThat(first(plan, Rule.STRUCTURE).message())
        .isEqualTo("op 99 does not exist; there are 7");
  }

  @Test
  void tensorWithoutMemory() {
    var plan = PlanEdits.of(compile(CHAIN)).placement("b", Placement.NONE).plan();
    assertThat(first(plan, Rule.STRUCTURE).message()).isEqualTo("b has no memory");
  }

  @Test
  void unknownGroup() {
    var plan = PlanEdits.of(compile(CHAIN)).collective(0, c -> PlanEdits.group(c, "dp")).plan();
    assertThat(first(plan, Rule.STRUCTURE).message()).contains("group 'dp', which does not exist");
  }

  @Test
  void bufferIndexOutOfRange() {
    var plan = PlanEdits.of(compile(CHAIN)).placement("b", new Placement(99, 0)).plan();
    assertThat(first(plan, Rule.STRUCTURE).message())
        .isEqualTo("b is in buffer 99, which does not exist");
  }

  @Test
  void offsetsThatWouldOverflow() {
    var plan =
        PlanEdits.of(compile(CHAIN)).buffer("a", b -> at(b, Long.MAX_VALUE / 128 * 128)).plan();
    assertThat(first(plan, Rule.STRUCTURE).message()).isEqualTo("the buffer a exceeds any memory");
    plan = PlanEdits.of(compile(CHAIN)).placement("b", new Placement(3, Long.MAX_VALUE)).plan();
    assertThat(first(plan, Rule.STRUCTURE).message()).isEqualTo("b exceeds any memory");
  }

  @Test
  void viewThatWrapsAround() {
    // 2^62 elements of 4 bytes are 0 bytes in 64 bits.
    var text =
        """
        graph g(x: f32[64, 64]) {
          v = aten::as_strided(x, [4], [1], 4611686018427387904)
          a = aten::relu(v)
          return a
        }
        """;
    assertThatThrownBy(() -> compile(text)).isInstanceOf(CompileException.class);
  }

  @Test
  void resultThatTheOpDoesNotGive() {
    var text =
        """
        graph g(x: f32[64, 32]) {
          a = aten::relu(x)
          b = aten::logical_not(a)
          return b
        }
        """;
    var base = compile(text);
    var other = base.rankPlans().getFirst().graph().ops().getLast().def();
    var plan =
        PlanEdits.of(base)
            .op(0, op -> new Op(other, op.args(), op.results(), op.span(), op.notes()))
            .plan();
    assertThat(first(plan, Rule.STRUCTURE).message())
        .isEqualTo("aten::logical_not returns b8[64, 32], but a is f32[64, 32]");
  }

  @ParameterizedTest
  @CsvSource({"0, 1, 0", "4, 0, 1", "1, 1, 0", "2, 2, 0", "3, 1, 0"})
  void resultWhoseElementsShareAPlace(long down, long across, int dim) {
    var base =
        compile(
            """
            graph g(x: f32[64, 32]) {
              v, i = aten::topk(x, 4)
              return v
            }
            """);
    var strides = ImmutableLongArray.of(down, across);
    var plan = PlanEdits.of(base).op(0, op -> PlanEdits.restrided(op, 1, strides)).plan();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .startsWith("i is i64[64, 4][%s, %s], and its elements overlap".formatted(down, across))
        .contains("of dimension " + dim);
  }

  @Test
  void planFileWithAResultWhoseElementsShareAPlace() {
    var json =
        PlanFile.toJson(
            compile(
                """
                graph g(x: f32[64, 32]) {
                  y: f32[64, 32][33, 1] = aten::neg(x)
                  return y
                }
                """));
    var other = json.replace("y: f32[64, 32][33, 1] =", "y: f32[64, 32][1, 1] =");
    assertThat(other).isNotEqualTo(json);
    assertThatThrownBy(() -> PlanFile.read(new SourceFile("p.json", other)))
        .isInstanceOf(CompileException.class)
        .hasMessageStartingWith("p.json#program:")
        .hasMessageContaining(
            "aten::neg writes f32[64, 32][1, 1], but each element of a result needs separate"
                + " memory");
  }

  @Test
  void resultWithGaps() {
    var base =
        compile(
            """
            graph g(x: f32[64, 32]) {
              v, i: i64[64, 4][8, 1] = aten::topk(x, 4)
              e = aten::empty_strided([4, 4], [0, 0])
              return v
            }
            """);
    assertThat(PlanVerifier.verify(base)).isEmpty();
  }

  @Test
  void operandBeforeItsOp() {
    var plan = PlanEdits.of(compile(CHAIN)).steps(s -> Collections.swap(s, 0, 1)).plan();
    assertThat(first(plan, Rule.ORDER).toString())
        .isEqualTo(
            "order (rank 0, step 0): step 0 (aten::mm → b) reads a before aten::relu → a has run");
  }

  @Test
  void missingStep() {
    var plan = PlanEdits.of(compile(CHAIN)).steps(s -> s.remove(2)).plan();
    assertThat(first(plan, Rule.ORDER).message()).contains("reads v before aten::exp → c has run");
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.message().equals("no step runs aten::exp → c"));
  }

  @Test
  void repeatedStep() {
    var plan = PlanEdits.of(compile(CHAIN)).steps(s -> s.add(1, s.getFirst())).plan();
    assertThat(first(plan, Rule.ORDER).message())
        .isEqualTo("step 1 (aten::relu → a) repeats step 0 (aten::relu → a)");
  }

  @Test
  void viewsHaveNoSteps() {
    var plan = PlanEdits.of(compile(CHAIN)).steps(s -> s.add(3, new Step.Compute(3))).plan();
    assertThat(first(plan, Rule.ORDER).message())
        .isEqualTo("step 3 (aten::slice.Tensor → v) does nothing at run time");
  }

  @Test
  void readBeforeTheJoin() {
    var plan = PlanEdits.of(compile(ASYNC)).steps(s -> Collections.swap(s, 5, 6)).restated();
    assertThat(first(plan, Rule.ORDER).message())
        .isEqualTo(
            "step 5 (aten::mm → d) reads o, but step 1 (start _c10d_functional::all_reduce → r)"
                + " may not have finished: no step joins it before");
  }

  @Test
  void missingJoin() {
    var plan = PlanEdits.of(compile(ASYNC)).steps(s -> s.remove(5)).restated();
    assertThat(rules(plan)).contains(Rule.ORDER);
    assertThat(PlanVerifier.verify(plan)).anyMatch(v -> v.message().startsWith("nothing joins"));
  }

  @Test
  void startsOutOfOrder() {
    var text =
        """
        graph two(x: f32[64, 64], y: f32[64, 64]) {
          q = _c10d_functional::all_reduce(x, "sum", "tp")
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          return q, r
        }
        """;
    var plan = PlanEdits.of(compile(text)).steps(Collections::reverse).restated();
    assertThat(first(plan, Rule.ORDER).message())
        .contains(
            "starts collective 1, but in the order common to all ranks, collective 0 comes next");
  }

  @Test
  void viewAwayFromItsBase() {
    var edits = PlanEdits.of(compile(CHAIN));
    var base = edits.rank(0).placement(edits.value(0, "c"));
    var plan = edits.placement("v", new Placement(base.buffer(), 0)).restated();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .isEqualTo("v must be at byte 8192 of c, which is at symm+0x0, but is at symm+0x0");
  }

  @Test
  void bufferTooSmall() {
    var plan =
        PlanEdits.of(compile(CHAIN))
            .buffer(
                "a", b -> new Buffer("a", b.arena(), false, b.offset(), 128, b.first(), b.last()))
            .restated();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .isEqualTo("the buffer a has 128 bytes, but its contents take 16384");
  }

  @Test
  void elementsAcrossTheirGrid() {
    var edits = PlanEdits.of(compile(CHAIN));
    var place = edits.rank(0).placement(edits.value(0, "a"));
    var plan = edits.placement("a", new Placement(place.buffer(), 2)).restated();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .isEqualTo("a, with elements of 4 bytes, is misaligned at symm+0x4002");
  }

  /** Each is live with the one before, in the same memory. */
  @Test
  void totalOfBuffersInOnePlace() {
    var text =
        """
        graph g(x: f32[64, 64]) {
          a = aten::mm(x, x)
          b = aten::mm(a, a)
          return b
        }
        """;
    var plan = PlanEdits.of(compile(text)).over("b", "a").restated();
    assertThat(plan.rankPlans().getFirst().maxLive()).isEqualTo(2 * 16384);
    assertThat(plan.total()).isEqualTo(new ArenaSize(16384, 16384));
  }

  @Test
  void bufferOffTheGrid() {
    var plan = PlanEdits.of(compile(CHAIN)).buffer("a", b -> at(b, b.offset() + 64)).restated();
    assertThat(first(plan, Rule.PLACEMENT).message()).contains("not a multiple of 128");
  }

  @Test
  void bufferOutsideItsArena() {
    var plan = PlanEdits.of(compile(CHAIN)).buffer("a", b -> at(b, b.offset() + 128)).plan();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .contains("extends beyond the symmetric arena");
    var local =
        """
        graph g(x: f32[64, 64]) {
          a = aten::mm(x, x)
          return a
        }
        """;
    plan = PlanEdits.of(compile(local)).buffer("a", b -> at(b, b.offset() + 128)).plan();
    assertThat(first(plan, Rule.PLACEMENT).message()).contains("extends beyond the local arena");
  }

  @Test
  void arenaLargerThanItsBuffers() {
    var plan = PlanEdits.of(compile(CHAIN)).symmetric(8192 + 128, 8192).plan();
    assertThat(rules(plan)).containsExactly(Rule.PLACEMENT);
  }

  @Test
  void wrongPositionInTheSignature() {
    var plan = PlanEdits.of(compile(CHAIN)).buffer("x", b -> at(b, 1)).plan();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .isEqualTo("the input x is in x, the caller's input 1");
  }

  @Test
  void lifetimeTooShort() {
    var plan = PlanEdits.of(compile(ASYNC)).buffer("p", b -> lives(b, 0, 1)).plan();
    assertThat(first(plan, Rule.LIFETIME).message())
        .isEqualTo(
            "the plan says that the buffer p lives from step 0 to 1, but it is used from step 0"
                + " (aten::relu → p) to step 6 (aten::mm → d)");
  }

  @Test
  void lifetimeTooLong() {
    var plan = PlanEdits.of(compile(CHAIN)).buffer("a", b -> lives(b, 0, 2)).plan();
    assertThat(rules(plan)).containsExactly(Rule.LIFETIME);
  }

  @Test
  void inputsAndOutputsLastToTheEnd() {
    var plan = PlanEdits.of(compile(CHAIN)).buffer("x", b -> lives(b, -1, 0)).plan();
    assertThat(first(plan, Rule.LIFETIME).message()).endsWith("to after the last step (5)");
    plan = PlanEdits.of(compile(CHAIN)).buffer("r", b -> lives(b, 4, 4)).plan();
    assertThat(rules(plan)).containsExactly(Rule.LIFETIME);
  }

  @Test
  void nameOfAnotherTensor() {
    var plan =
        PlanEdits.of(compile(CHAIN))
            .buffer(
                "b",
                b -> new Buffer("c", b.arena(), false, b.offset(), b.bytes(), b.first(), b.last()))
            .plan();
    assertThat(first(plan, Rule.LIFETIME).message())
        .isEqualTo("the buffer c is first written as b");
  }

  @Test
  void boundThatNothingNeeds() {
    var plan = PlanEdits.of(compile(CHAIN)).symmetric(8192, 128).plan();
    assertThat(first(plan, Rule.LIFETIME).message())
        .isEqualTo(
            "the plan gives the symmetric arena a bound of 128 bytes, but 8192 are live at once");
  }

  @Test
  void operandOutsideSymmetricMemory() {
    var plan =
        PlanEdits.of(compile(CHAIN))
            .buffer("d", b -> at(b, ArenaKind.LOCAL, false, 16384))
            .restated();
    assertThat(first(plan, Rule.REALIZATION).message())
        .isEqualTo(
            "collective 0 (_c10d_functional::all_reduce → r) reads d of every rank as one_shot, but"
                + " the buffer at local+0x4000 is not symmetric");
  }

  @Test
  void symmetricBufferThatNothingAsksFor() {
    var plan =
        PlanEdits.of(compile(ASYNC))
            .buffer("a", b -> at(b, ArenaKind.SYMMETRIC, true, b.offset()))
            .restated();
    assertThat(first(plan, Rule.REALIZATION).message())
        .isEqualTo("nothing needs the buffer a to be symmetric");
  }

  @Test
  void variantWithoutItsHardware() {
    var plan =
        PlanEdits.of(compile(ASYNC))
            .collective(0, c -> PlanEdits.variant(c, Variant.MULTIMEM))
            .plan();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.message().endsWith("is multimem, but the target has no multicast"))
        .anyMatch(v -> v.message().contains("is multimem, but the verdicts choose [two_shot]"));
  }

  private static Plan planOfEight(String parts, String call, CompileOptions options) {
    var text =
        """
        graph version 1
        group tp = %s
        op my_lib::swap(Tensor input, str group) -> Tensor symm_mem(input) group(group)
        graph g(x: f32[64, 64]) {
          y = aten::neg(x)
          r: f32[64, 64] = %s
          return r
        }
        """
            .formatted(parts, call);
    return Compiler.forTarget(Target.H200_X8)
        .with(options.withRewrites(RewriteOptions.OFF))
        .compile(GraphParser.parse(new SourceFile("eight.graph", text)));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          ONE_SHOT      | [0, 4], [1, 5], [2, 6], [3, 7] | [0, 4]
          TWO_SHOT      | [0, 1], [4, 5], [3, 7], [2, 6] | [3, 7]
          NCCL_SYMM     | [0, 1, 2, 3, 4, 5, 6, 7]       | [0, 1, 2, 3, 4, 5, 6, 7]
          MULTIMEM      | [1, 0], [2, 3], [5, 4], [7, 6] |
          MULTIMEM_ONE_SHOT | [0, 4], [1, 5], [2, 6], [3, 7] | [0, 4]
          NCCL          | [0, 4], [1, 5], [2, 6], [3, 7] |
          LOCAL         | [0], [1], [2], [3], [4], [5], [6], [7] |
          """)
  void peersOnOtherHosts(Variant variant, String parts, @Nullable String apart) {
    var options =
        CompileOptions.DEFAULT.withMulticast(true).withVariants(ImmutableMap.of("r", variant));
    var plan = planOfEight(parts, "_c10d_functional::all_reduce(y, 'sum', 'tp')", options);
    var ofFour = PlanEdits.of(plan).target(fourOnEachHost()).plan();
    if (apart == null) {
      assertThat(PlanVerifier.verify(ofFour)).isEmpty();
    } else {
      assertThat(first(ofFour, Rule.REALIZATION).message())
          .isEqualTo(
              "collective 0 (_c10d_functional::all_reduce → r) is %s, but its ranks %s are in the"
                      .formatted(variant.text(), apart)
                  + " NVLink domains [0, 1] of the hosts 2x4");
    }
  }

  @Test
  void symmetricMemoryOfACustomOpOnOtherHosts() {
    var plan =
        planOfEight(
            "[0, 4], [1, 5], [2, 6], [3, 7]", "my_lib::swap(y, 'tp')", CompileOptions.DEFAULT);
    assertThat(
            first(PlanEdits.of(plan).target(fourOnEachHost()).plan(), Rule.REALIZATION).message())
        .contains("is custom, but its ranks [0, 4] are in the NVLink domains [0, 1]");
  }

  /** Everything that eight H200 have, but four of them on each host. */
  private static Target fourOnEachHost() {
    return TargetFile.read(
        new SourceFile(
            "four.json",
            """
            {"format": "symplan-target", "version": 1, "name": "four", "base": "h200x8", "gpus": 4}
            """));
  }

  @Test
  void multicastThatNobodySwitchedOn() {
    var plan =
        planOfEight(
            "[0, 1, 2, 3, 4, 5, 6, 7]",
            "_c10d_functional::all_reduce(y, 'sum', 'tp')",
            CompileOptions.DEFAULT
                .withMulticast(true)
                .withVariants(ImmutableMap.of("r", Variant.MULTIMEM)));
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    assertThat(first(PlanEdits.of(plan).multicast(false).plan(), Rule.REALIZATION).message())
        .endsWith("is multimem, but multicast is off; add --multicast=on");
  }

  /** Variants that kernels and NCCL do not know, whatever the target. */
  @ParameterizedTest
  @CsvSource({
    "i32, bor, NCCL, NCCL does not support bor",
    "i32, bor, TWO_SHOT, 'two-shot kernels support sum, avg, min and max, not bor'",
    "i32, sum, TWO_SHOT, no kernel reduces i32",
    "i32, sum, NCCL_SYMM, 'NCCL''s symmetric kernels add floats of at most 32 bits, not i32'",
    "f32, max, NCCL_SYMM, 'NCCL''s symmetric kernels do not support max'",
    "i16, sum, NCCL, NCCL does not reduce i16"
  })
  void reductionThatTheVariantDoesNotKnow(
      String dtype, String op, Variant variant, String because) {
    var text =
        """
        graph g(x: %s[64, 64]) {
          y = aten::neg(x)
          r = _c10d_functional::all_reduce(y, "%s", "tp")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """
            .formatted(dtype, op);
    var plan =
        PlanEdits.of(compile(text, variants("all_reduce", Variant.ONE_SHOT)))
            .collective(0, c -> PlanEdits.variant(c, variant))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("is %s, but %s".formatted(variant.text(), because));
  }

  @Test
  void localVariantInAGroup() {
    var plan =
        PlanEdits.of(compile(CHAIN)).collective(0, c -> PlanEdits.variant(c, Variant.LOCAL)).plan();
    assertThat(first(plan, Rule.REALIZATION).message())
        .contains("is local, but the group has 4 ranks");
  }

  @Test
  void anotherCollectiveThanTheGraphs() {
    var plan = PlanEdits.of(compile(CHAIN)).collective(0, c -> PlanEdits.group(c, "pairs")).plan();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("has group pairs in the plan, but tp in the graph");
    plan =
        PlanEdits.of(compile(CHAIN))
            .collective(
                0, c -> remade(c, ReduceOp.MAX, c.operands(), c.verdicts(), c.args(), false))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("has reduction max in the plan, but sum in the graph");
    plan =
        PlanEdits.of(compile(CHAIN))
            .collective(0, c -> remade(c, ReduceOp.SUM, c.results(), c.verdicts(), c.args(), false))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message()).contains("has operands [");
  }

  @Test
  void groupOfAnotherSizeThanTheOps() {
    var text =
        """
        graph g(x: f32[64, 64]) {
          y = _c10d_functional::all_gather_into_tensor(x, 4, "tp")
          return y
        }
        """;
    var plan =
        PlanEdits.of(compile(text))
            .op(0, op -> withArg(op, 2, new Arg.Str("pairs")))
            .collective(0, c -> PlanEdits.group(c, "pairs"))
            .plan();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(
            v -> v.message().endsWith("has number of ranks 2 in the plan, but 4 in the graph"));
  }

  private static Op withArg(Op op, int position, Arg arg) {
    var args = new ArrayList<>(op.args());
    args.set(position, arg);
    return new Op(op.def(), ImmutableList.copyOf(args), op.results(), op.span(), op.notes());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "1 | AGREEMENT   | has pairs [[0, 1]], but [[1, 0]] on rank 0",
        "7 | REALIZATION | has pairs [[7, 0]] in a group of 4"
      })
  void pairsThatRanksDoNotShare(int source, Rule rule, String message) {
    var graph =
        """
        graph g(x: f32[64]) ranks [%s] {
          y = symplan::collective_permute(x, [[0, 1]], "tp")
          return y
        }
        """;
    var text = graph.formatted("0, 2") + graph.formatted("1, 3");
    var pairs = new Permutation(ImmutableList.of(new Permutation.Pair(source, 0)));
    var plan = PlanEdits.of(compile(text)).op(0, op -> withArg(op, 1, pairs.arg())).plan();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.rule() == rule && v.message().endsWith(message));
  }

  @Test
  void inPlaceFlagThatThePlacesBelie() {
    var plan =
        PlanEdits.of(compile(CHAIN))
            .collective(0, c -> remade(c, ReduceOp.SUM, c.operands(), c.verdicts(), c.args(), true))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("is in place, but d is at symm+0x4000 and r at symm+0x0");
  }

  @Test
  void missingVerdict() {
    var plan =
        PlanEdits.of(compile(CHAIN))
            .collective(
                0,
                c ->
                    remade(
                        c,
                        ReduceOp.SUM,
                        c.operands(),
                        c.verdicts().stream()
                            .filter(v -> v.variant() != Variant.NCCL)
                            .collect(ImmutableList.toImmutableList()),
                        c.args(),
                        false))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message()).endsWith("has no verdict on nccl");
  }

  @Test
  void decisionThatNothingCarriesOut() {
    var plan =
        PlanEdits.of(compile(CHAIN))
            .collective(
                0,
                c ->
                    remade(
                        c,
                        ReduceOp.SUM,
                        c.operands(),
                        c.verdicts(),
                        ImmutableList.of(staged(c.args().getFirst()), c.args().getLast()),
                        false))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("has d staged, but nothing copies it");
  }

  private static ArgDecision staged(ArgDecision arg) {
    return new ArgDecision(
        arg.result(), arg.value(), Realization.STAGED, arg.reason(), arg.cause(), arg.bytes());
  }

  private static CollectivePlan remade(
      CollectivePlan c,
      ReduceOp reduceOp,
      ImmutableList<Integer> operands,
      ImmutableList<Verdict> verdicts,
      ImmutableList<ArgDecision> args,
      boolean inPlace) {
    return new CollectivePlan(
        c.op(),
        c.kind(),
        c.group(),
        Optional.of(reduceOp),
        c.root(),
        operands,
        c.results(),
        c.variant(),
        c.stream(),
        c.start(),
        c.end(),
        inPlace,
        c.workspace(),
        verdicts,
        args,
        c.epilogue());
  }

  @Test
  void kernelsOnTheCopyEnginesStream() {
    var plan =
        PlanEdits.of(compile(ASYNC))
            .collective(0, c -> PlanEdits.stream(c, StreamKind.COPY))
            .plan();
    assertThat(first(plan, Rule.REALIZATION).message()).endsWith("is two_shot on the copy stream");
  }

  @Test
  void ranksAtOtherOffsets() {
    var base = compile(RANKS, variants("all_reduce", Variant.ONE_SHOT));
    var plan = PlanEdits.of(base).buffer(1, "b", b -> at(b, b.offset() + 16384)).restated();
    assertThat(first(plan, Rule.AGREEMENT).rank()).isEqualTo(1);
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(
            v ->
                v.rule() == Rule.AGREEMENT
                    && v.message()
                        .contains("(_c10d_functional::all_reduce → r) has operand offset"));
  }

  @Test
  void ranksWithOtherBarriers() {
    var base = compile(RANKS, variants("all_reduce", Variant.NCCL));
    var plan = PlanEdits.of(base).collective(1, 0, c -> PlanEdits.barriers(c, false, true)).plan();
    assertThat(first(plan, Rule.AGREEMENT).message())
        .endsWith("has barrier before none, but own on rank 0");
  }

  @Test
  void ranksWithOtherLayouts() {
    var graph =
        """
        graph g(x: f32[64, 32]) ranks [%s] {
          y = aten::%s(x)
          n = aten::t(y)
          s = _c10d_functional::all_reduce(n, "sum", "tp")
          return s
        }

        """;
    var text = graph.formatted("0, 2", "relu") + graph.formatted("1, 3", "neg");
    var json = PlanFile.toJson(compile(text, variants("all_reduce", Variant.NCCL)));
    int last = json.lastIndexOf("aten::t(y)");
    int line = json.lastIndexOf('"', last);
    var other =
        json.substring(line)
            .replace("aten::t(y)", "aten::view(y, [32, 64])")
            .replace("f32[32, 64][1, 32]", "f32[32, 64]");
    assertThatThrownBy(
            () -> PlanFile.read(new SourceFile("p.json", json.substring(0, line) + other)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("has operand strides [64, 1], but [1, 32] on rank 0");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "_c10d_functional::all_reduce(n, 'sum', 'tp')         | NCCL      | has %s, but its result"
            + " is laid out as r: f32[64, 32]",
        "_c10d_functional::all_reduce(n, 'sum', 'tp')         | NCCL_SYMM | has %s, but its result"
            + " is laid out as r: f32[64, 32]",
        "_c10d_functional::all_gather_into_tensor(n, 4, 'tp') | NCCL_SYMM | moves %s, which is not"
            + " contiguous",
        "symplan::reduce_scatter_dim(n, 'sum', 0, 4, 'tp')    | NCCL_SYMM | moves %s, which is not"
            + " contiguous"
      })
  void variantThatReadsNoRows(String call, Variant variant, String message) {
    var text =
        """
        graph g(x: f32[64, 64]) {
          y = aten::relu(x)
          n = aten::slice.Tensor(y, 1, 0, 32)
          r = %s
          return r
        }
        """
            .formatted(call.replace('\'', '"'));
    var kind = call.contains("reduce_scatter") ? "reduce_scatter" : call.split("::|_into|\\(")[1];
    var plan = compileReadingRows(text, variants(kind, Variant.ONE_SHOT));
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    var other = PlanEdits.of(plan).collective(0, c -> PlanEdits.variant(c, variant)).plan();
    assertThat(PlanVerifier.verify(other))
        .anyMatch(v -> v.message().endsWith(message.formatted("n: f32[64, 32][64, 1]")));
  }

  /** Slices of some rows of each of several matrices, which copy engines cannot copy as one. */
  @Test
  void slicesAtSeveralDistances() {
    var text =
        """
        graph g(x: f32[8, 8, 64]) {
          y = aten::relu(x)
          n = aten::slice.Tensor(y, 2, 0, 32)
          r = symplan::all_to_all_dim(n, 0, 0, 4, "tp")
          return r
        }
        """;
    var base = compileReadingRows(text, variants("all_to_all", Variant.COPY_ENGINE));
    var one = new Arg.Int(1);
    var plan = PlanEdits.of(base).op(2, op -> withArg(withArg(op, 1, one), 2, one)).plan();
    assertThat(PlanVerifier.verify(base)).isEmpty();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("moves n: f32[8, 8, 32][512, 64, 1], which is not contiguous");
  }

  @Test
  void ranksWithRowsFurtherApart() {
    var graph =
        """
        graph g(x: f32[64, 64]) ranks [%s] {
          y = aten::%s(x)
          v = aten::view(y, [64, 64])
          n = aten::slice.Tensor(v, 1, 0, 32)
          r = _c10d_functional::all_to_all_single(n, [16, 16, 16, 16], [16, 16, 16, 16], "tp")
          return r
        }

        """;
    var text = graph.formatted("0, 2", "relu") + graph.formatted("1, 3", "neg");
    var json = PlanFile.toJson(compileReadingRows(text, variants("all_to_all", Variant.ONE_SHOT)));
    int line = json.lastIndexOf('"', json.lastIndexOf("aten::view(y"));
    var other =
        json.substring(line)
            .replace("f32[64, 64][64, 1]", "f32[128, 32]")
            .replace("f32[64, 64]", "f32[128, 32]")
            .replace("(y, [64, 64])", "(y, [128, 32])")
            .replace("aten::slice.Tensor(v, 1, 0, 32)", "aten::slice.Tensor(v, 0, 0, 64)")
            .replace("f32[64, 32][64, 1]", "f32[64, 32]");
    assertThatThrownBy(
            () -> PlanFile.read(new SourceFile("p.json", json.substring(0, line) + other)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("has operand strides [32, 1], but [64, 1] on rank 0");
  }

  @Test
  void rowsThatNobodySends() {
    var text =
        """
        graph g(x: f32[4, 64]) {
          y = aten::relu(x)
          r = _c10d_functional::all_to_all_single(y, [2, 2], [2, 2], "pairs")
          return r
        }
        """;
    var plan =
        PlanEdits.of(compile(text, variants("all_to_all", Variant.NCCL)))
            .op(1, op -> new Op(op.def(), sending(op, 1, 3), op.results(), op.span(), op.notes()))
            .plan();
    assertThat(first(plan, Rule.AGREEMENT).message())
        .isEqualTo("rank 0 takes 2 rows from rank 0, which sends it 1");
  }

  private static ImmutableList<Arg> sending(Op op, long... rows) {
    var args = new ArrayList<>(op.args());
    var splits = ImmutableList.<Arg>builder();
    LongStream.of(rows).forEach(count -> splits.add(new Arg.Int(count)));
    args.set(op.def().schema().indexOf("input_split_sizes"), new Arg.Seq(splits.build()));
    return ImmutableList.copyOf(args);
  }

  @Test
  void ranksThatWaitForEachOther() {
    var text =
        """
        graph g(x: f32[64, 64], y: f32[64, 64]) ranks [0, 2] {
          q = _c10d_functional::all_reduce(x, "sum", "tp")
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          return q, r
        }

        graph g(x: f32[64, 64], y: f32[64, 64]) ranks [1, 3] {
          a = aten::relu(y)
          q = _c10d_functional::all_reduce(x, "sum", "tp")
          r = _c10d_functional::all_reduce(a, "sum", "tp")
          return q, r
        }
        """;
    var base = compile(text, variants("all_reduce", Variant.NCCL));
    var plan = PlanEdits.of(base).steps(Collections::reverse).restated();
    var violation = first(plan, Rule.AGREEMENT);
    assertThat(violation.message())
        .startsWith("the ranks wait for each other: rank 0 waits in step 0");
    assertThat(violation.trace()).hasSize(2);
  }

  @Test
  void ranksThatMeetOthers() {
    var text =
        """
        group other = [0, 3], [1, 2]

        graph g(x: f32[64, 64]) ranks [0, 2] {
          q = _c10d_functional::all_reduce(x, "sum", "pairs")
          return q
        }

        graph g(x: f32[64, 64]) ranks [1, 3] {
          a = aten::relu(x)
          q = _c10d_functional::all_reduce(a, "sum", "GROUP")
          return q
        }
        """;
    var plan =
        PlanEdits.of(compile(text.replace("GROUP", "pairs")))
            .collective(1, 0, c -> PlanEdits.group(c, "other"))
            .plan();
    assertThat(first(plan, Rule.AGREEMENT).message())
        .isEqualTo("collective 0 is for the ranks [0, 1], but on rank 1 for the ranks [1, 2]");
    assertThatThrownBy(() -> compile(text.replace("GROUP", "other")))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(
            "ranks of group 'pairs' have 0 collectives in it here, but 1 on other ranks");
  }

  @Test
  void digestOfAnotherPlan() {
    var plan = PlanEdits.of(compile(CHAIN)).digest("0".repeat(64));
    assertThat(rules(plan)).containsExactly(Rule.DIGEST);
  }
}
