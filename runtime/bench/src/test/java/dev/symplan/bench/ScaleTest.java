package dev.symplan.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.symplan.bench.TransformerGraph.Form;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.lang.management.ManagementFactory;
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

  private static long allocatedBytes(Runnable action) {
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    action.run();
    return threads.getCurrentThreadAllocatedBytes() - before;
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
}
