package dev.symplan.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.sun.management.ThreadMXBean;
import dev.symplan.bench.TransformerGraph.Form;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.verify.PlanVerifier;
import dev.symplan.planner.verify.Violation;
import dev.symplan.planner.verify.Violation.Rule;
import java.lang.management.ManagementFactory;
import java.util.concurrent.Callable;
import java.util.concurrent.ForkJoinPool;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The cost of large graphs, counted rather than timed. */
class ScaleTest {
  private static final CompileOptions OPTIONS = CompileOptions.DEFAULT.withRanks(8);

  /** The growth of n·log n from one size to four times as many ops, with some room. */
  private static final double MAX_GROWTH = 5;

  private static Plan compile(Program program) {
    return Compiler.forDefaultTarget().with(OPTIONS).compile(program);
  }

  /** {@return what work gives when so many threads do it} */
  private static <T> T by(int threads, Callable<T> work) {
    try (var pool = new ForkJoinPool(threads)) {
      return pool.submit(work).join();
    }
  }

  private static long allocatedBytes(Runnable action) {
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    return by(
        1,
        () -> {
          long before = threads.getCurrentThreadAllocatedBytes();
          action.run();
          return threads.getCurrentThreadAllocatedBytes() - before;
        });
  }

  @ParameterizedTest
  @EnumSource
  void allocationGrowsWithTheOps(Form form) {
    var small = TransformerGraph.of(form, 2_000, 1);
    var large = TransformerGraph.of(form, 8_000, 1);
    compile(TransformerGraph.of(form, 1_000, 1));
    long bytes = allocatedBytes(() -> compile(small));
    assertThat((double) allocatedBytes(() -> compile(large)) / bytes).isLessThan(MAX_GROWTH);
  }

  @Test
  void readsTheTextOfALargeGraph() {
    var program = TransformerGraph.of(Form.TRAINING, 8_000, 1);
    var read =
        ProgramReader.read(
            new SourceFile("transformer.fx.txt", FxText.of(program.graphs().getFirst())),
            OPTIONS,
            warning -> assertThat(warning).as("warning").isNull());
    assertThat(read.graphs().getFirst().ops()).hasSameSizeAs(program.graphs().getFirst().ops());
    assertThat(compile(read).total()).isEqualTo(compile(program).total());
  }

  @Test
  void plans100000OpsClosely() {
    var plan = compile(TransformerGraph.of(Form.TRAINING, 100_000, 1));
    assertThat(plan.forRank(0).graph().ops()).hasSizeBetween(90_000, 110_000);
    assertThat(plan.total().bytes() / (double) plan.total().bound()).isLessThan(1.0001);
  }

  /** Enough ops that several threads work on most lists of them. */
  @ParameterizedTest
  @EnumSource
  void manyThreadsPlanAndFindWhatOneDoes(Form form) {
    var program = TransformerGraph.of(form, 30_000, 1);
    var plan = by(1, () -> compile(program));
    assertThat(PlanFile.toJson(by(4, () -> compile(program))).equals(PlanFile.toJson(plan)))
        .as("the same plan")
        .isTrue();

    var wrong = withAllBuffersBelow(plan);
    var found = by(1, () -> PlanVerifier.verify(wrong));
    assertThat(found).hasSizeGreaterThan(20).map(Violation::rule).contains(Rule.OVERWRITTEN);
    assertThat(by(4, () -> PlanVerifier.verify(wrong))).isEqualTo(found);
  }

  /** A plan that puts all buffers of an arena over each other. */
  private static Plan withAllBuffersBelow(Plan plan) {
    var rank = plan.forRank(0);
    var buffers =
        rank.buffers().stream()
            .map(
                b ->
                    new Buffer(
                        b.name(),
                        b.arena(),
                        b.symmetric(),
                        b.arena().isExternal() ? b.offset() : 0,
                        b.bytes(),
                        b.first(),
                        b.last()))
            .collect(ImmutableList.toImmutableList());
    var wrong =
        new RankPlan(
            rank.graph(),
            rank.placements(),
            buffers,
            rank.steps(),
            rank.collectives(),
            rank.local());
    return new Plan(
        plan.name(),
        plan.target(),
        plan.topology(),
        plan.multicast(),
        plan.groups(),
        plan.declarations(),
        ImmutableList.of(wrong),
        plan.planOfRank(),
        plan.symmetric(),
        plan.digest(),
        plan.rewrites(),
        plan.replicated(),
        plan.reordering(),
        plan.frontier(),
        plan.least(),
        plan.warnings());
  }
}
