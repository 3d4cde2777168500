package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.PlanEdits.barriers;
import static dev.symplan.planner.verify.VerifierFixtures.ASYNC;
import static dev.symplan.planner.verify.VerifierFixtures.BESIDE;
import static dev.symplan.planner.verify.VerifierFixtures.CHAIN;
import static dev.symplan.planner.verify.VerifierFixtures.compile;
import static dev.symplan.planner.verify.VerifierFixtures.compileReadingRows;
import static dev.symplan.planner.verify.VerifierFixtures.first;
import static dev.symplan.planner.verify.VerifierFixtures.variants;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Barrier.Edge;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Collections;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Memory that is overwritten, within a rank, between its streams, and by its peers. */
class MemoryRulesTest {
  @Test
  void twoLiveTensorsInOnePlace() {
    var plan = PlanEdits.of(compile(CHAIN)).over("b", "a").restated();
    assertThat(first(plan, Rule.OVERWRITTEN).message())
        .isEqualTo("aten::mm → b writes b at symm+0x4000 over its operand a at symm+0x4000");
  }

  @Test
  void overwrittenBetweenWriteAndRead() {
    var plan = PlanEdits.of(compile(BESIDE)).over("c", "a").restated();
    var violation = first(plan, Rule.OVERWRITTEN);
    var place = violation.message().replaceAll(".*(local[+]0x[0-9a-f]+).*", "$1");
    assertThat(violation.toString())
        .isEqualTo(
            "overwritten (rank 0, step 3): step 3 (aten::mm → d) reads a at "
                + place
                + ", but step 2 (aten::mm → c) wrote c there");
    var bytes = place + " (16384 bytes)";
    assertThat(violation.trace())
        .containsExactly(
            "rank 0, in step 0 (aten::relu → a, test.graph:7), writes a at " + bytes,
            "rank 0, in step 2 (aten::mm → c, test.graph:9), writes c at " + bytes,
            "rank 0, in step 3 (aten::mm → d, test.graph:10), reads a at "
                + bytes
                + ", and finds c");
  }

  @Test
  void productInPlaceOfItsOperand() {
    // The same layout, but not element by element.
    var text =
        """
        graph g(x: f32[64, 64]) {
          a = aten::relu(x)
          b = aten::cumsum(a, 0)
          return b
        }
        """;
    var plan = PlanEdits.of(compile(text)).over("b", "a").restated();
    assertThat(first(plan, Rule.OVERWRITTEN).message()).contains("over its operand a");
  }

  @Test
  void anOperandMayBeInMemoryOfAnotherTensor() {
    var text =
        """
        op test::two(Tensor x) -> (Tensor(*), Tensor(*))

        graph g(x: f32[64, 64]) {
          v: f32[64, 64], w: f32[64, 64] = test::two(x)
          y = aten::cumsum(w, 0)
          z = aten::cumsum(y, 0)
          return z
        }
        """;
    var plan = compile(text);
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    assertThat(PlanVerifier.verify(PlanEdits.of(plan).over("y", "v").restated()))
        .anyMatch(
            v ->
                v.rule() == Rule.OVERWRITTEN
                    && v.message().contains("writes y at")
                    && v.message()
                        .endsWith(
                            "over v, which step 1 (aten::cumsum → y) may still use through another"
                                + " tensor"));
  }

  @Test
  void plannedInputIsTheCallersToo() {
    var options = CompileOptions.DEFAULT.withInputs(MemorySpace.LOCAL);
    var plan = PlanEdits.of(compile(CHAIN, options)).over("b", "x").restated();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.rule() == Rule.OVERWRITTEN && v.message().startsWith("the end finds x"));
  }

  @Test
  void outputMustLastToTheEnd() {
    var text =
        """
        graph g(x: f32[64, 64], w: f32[64, 64]) {
          a = aten::mm(x, w)
          b = aten::mm(w, w)
          return a, b
        }
        """;
    var plan = PlanEdits.of(compile(text)).over("b", "a").restated();
    assertThat(first(plan, Rule.OVERWRITTEN).message()).startsWith("the end finds a at local+0x");
  }

  @Test
  void readOfChangedMemoryKeepsTheGraphsOrder() {
    var text =
        """
        graph g(x: f32[64, 64], y: f32[64, 64]) {
          a = aten::relu(x)
          b = aten::exp(a)
          c = aten::copy_(a, y)
          return b, c
        }
        """;
    var edits = PlanEdits.of(compile(text));
    var plan = edits.steps(s -> Collections.swap(s, 1, 2)).restated();
    assertThat(first(plan, Rule.OVERWRITTEN).message())
        .isEqualTo(
            "step 2 (aten::exp → b) reads a, which aten::copy_ → c must change later, but changes"
                + " before");
  }

  @Test
  void variantThatCannotWorkInPlace() {
    var plan =
        PlanEdits.of(compile(ASYNC))
            .collective(0, c -> PlanEdits.variant(c, Variant.ONE_SHOT))
            .plan();
    assertThat(first(plan, Rule.OVERWRITTEN).message())
        .isEqualTo("_c10d_functional::all_reduce → r is in place, which one_shot cannot do");
  }

  @Test
  void resultInPlaceOfAnotherOrder() {
    var text =
        """
        graph g(x: f32[64, 4, 128]) {
          a = aten::neg(x)
          p = aten::permute(a, [1, 0, 2])
          r: f32[4, 64, 128][8192, 128, 1] = _c10d_functional::all_reduce(p, "sum", "tp")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    var plan =
        PlanEdits.of(compileReadingRows(text, CompileOptions.DEFAULT))
            .over("r", "a")
            .collective(0, c -> PlanEdits.inPlace(PlanEdits.variant(c, Variant.TWO_SHOT)))
            .restated();
    assertThat(first(plan, Rule.OVERWRITTEN).message())
        .isEqualTo(
            "_c10d_functional::all_reduce → r writes r over p, whose elements are in another"
                + " order");
  }

  @Test
  void computeWritesWhatACollectiveReads() {
    var plan = PlanEdits.of(compile(ASYNC)).over("a", "p").restated();
    var race = first(plan, Rule.RACE);
    assertThat(race.toString())
        .isEqualTo(
            "race (rank 0, step 2): step 2 (aten::mm → a) writes a at symm+0x0, which step 1 (start"
                + " _c10d_functional::all_reduce → r) still writes until step 5");
    assertThat(race.trace()).hasSize(3);
    assertThat(race.trace().getFirst()).startsWith("rank 0, in step 1 (start");
  }

  @Test
  void collectiveMovedBesideAReader() {
    var text =
        """
        graph g(x: f32[64, 64], w: f32[64, 64]) {
          a = aten::mm(x, w)
          r = _c10d_functional::all_reduce(a, "sum", "tp")
          b = aten::mm(w, w)
          return r, b
        }
        """;
    // Compiled without overlap, b may take the place of a.
    var base =
        PlanEdits.of(compile(text, variants("all_reduce", Variant.ONE_SHOT)))
            .over("b", "a")
            .collective(0, c -> PlanEdits.stream(c, StreamKind.COMM))
            .plan();
    var joinedAtOnce = PlanEdits.of(base).steps(s -> s.add(2, new Step.Join(0))).restated();
    assertThat(PlanVerifier.verify(joinedAtOnce)).isEmpty();
    var joinedAfter = PlanEdits.of(base).steps(s -> s.add(3, new Step.Join(0))).restated();
    assertThat(first(joinedAfter, Rule.RACE).message())
        .isEqualTo(
            "step 2 (aten::mm → b) writes b at symm+0x0, which step 1 (start"
                + " _c10d_functional::all_reduce → r) still reads until step 3");
  }

  @Test
  void collectiveWithoutBarriers() {
    var plan = PlanEdits.of(compile(CHAIN)).collective(0, c -> barriers(c, false, true)).plan();
    assertThat(first(plan, Rule.RACE).message())
        .contains("begins without a barrier, and no other barrier keeps peers out of its memory");
    plan = PlanEdits.of(compile(CHAIN)).collective(0, c -> barriers(c, true, false)).plan();
    assertThat(first(plan, Rule.RACE).message())
        .contains("ends without a barrier, and no other barrier waits until the peers are done");
  }

  /** Three pulls; what r reads is written before q, what q reads is not written again. */
  private static final String BORROWED =
      """
      graph borrowed(x: f32[64, 64], w: f32[64, 64]) {
        a = aten::mm(x, w)
        b = aten::mm(w, w)
        q = _c10d_functional::all_reduce(a, "sum", "tp")
        r = _c10d_functional::all_reduce(b, "sum", "tp")
        c = aten::mm(q, r)
        return c
      }
      """;

  @Test
  void barrierOfTheCollectiveBeforeIsEnough() {
    var base =
        PlanEdits.of(compile(BORROWED, variants("all_reduce", Variant.ONE_SHOT)))
            .ownBarriers()
            .plan();
    UnaryOperator<CollectivePlan> byTheEndBefore =
        c -> c.withBarriers(new Barrier.StandIn(0, Edge.END), c.end());
    UnaryOperator<CollectivePlan> byTheNextStart =
        c -> c.withBarriers(c.start(), new Barrier.StandIn(1, Edge.START));
    var plan = PlanEdits.of(base).collective(1, byTheEndBefore).plan();
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    plan = PlanEdits.of(base).collective(0, byTheNextStart).plan();
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    // Each relies on the other.
    plan = PlanEdits.of(base).collective(0, byTheNextStart).collective(1, byTheEndBefore).plan();
    assertThat(first(plan, Rule.RACE).message())
        .isEqualTo(
            "_c10d_functional::all_reduce → q ends without a barrier, and the start of"
                + " _c10d_functional::all_reduce → r has no barrier of its own");
  }

  @Test
  void barrierBeforeTheOperandIsWrittenIsTooEarly() {
    var edits =
        PlanEdits.of(compile(BORROWED, variants("all_reduce", Variant.ONE_SHOT))).ownBarriers();
    // a, q, b, r
    edits.steps(s -> Collections.swap(s, 1, 2));
    assertThat(PlanVerifier.verify(edits.restated())).isEmpty();
    var plan =
        edits
            .collective(1, c -> c.withBarriers(new Barrier.StandIn(0, Edge.END), c.end()))
            .restated();
    assertThat(first(plan, Rule.RACE).message())
        .isEqualTo(
            "_c10d_functional::all_reduce → r begins without a barrier of its own, so peers may"
                + " access b from step 1 (_c10d_functional::all_reduce → q), but step 2 (aten::mm →"
                + " b) uses its memory at symm+0x"
                + Long.toHexString(edits.rank(0).buffers().get(edits.buffer(0, "b")).offset()));
  }
}
