package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.MadeUpPieces;
import dev.symplan.ir.testkit.MadeUpRows;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Step;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Test;

/**
 * Norms, softmaxes, concatenations and what surrounds them, made up, give the same bits as a kernel
 * that goes by rows and op by op. Others with {@code -Dsymplan.seed=N}.
 */
class FusedRowsTest {
  private static final long SEED = Fuzz.seed(41_000);
  private static final int PROGRAMS = 400;

  @Test
  void rowsPassThroughWithoutChange() {
    assertThat(steps(seed -> MadeUpRows.text(seed, true), OpTrait.ROWWISE))
        .isGreaterThan(PROGRAMS / 4);
  }

  @Test
  void piecesPassThroughWithoutChange() {
    assertThat(steps(MadeUpPieces::text, OpTrait.CONCATENATION)).isGreaterThan(PROGRAMS / 2);
  }

  /** Checks all programs, and returns how many of their fused steps have ops of a trait. */
  private static int steps(LongFunction<String> texts, OpTrait trait) {
    int found = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = texts.apply(seed);
      var program = GraphParser.parse(new SourceFile("rows.graph", text));
      var options = CompileOptions.DEFAULT.withRanks(1);
      var outcome =
          Differential.check(
              new FuzzCase(program, Target.H200_X4, options, ImmutableMap.of(), seed));
      assertThat(outcome.finding()).as("seed %s%n%s", seed, text).isEmpty();
      assertThat(outcome.refused()).as("seed %s%n%s", seed, text).isEmpty();
      var plan = outcome.plan().orElseThrow().forRank(0);
      for (var step : plan.steps()) {
        if (step instanceof Step.Fused(var ops)) {
          found += ops.stream().anyMatch(op -> plan.graph().ops().get(op).def().has(trait)) ? 1 : 0;
        }
      }
    }
    System.out.printf("%s %s steps in %s programs from seed %s%n", found, trait, PROGRAMS, SEED);
    return found;
  }
}
