package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.SavedTensors;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Rewrite.Action;
import java.util.OptionalLong;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Training steps of one graph or of several, in the least memory that the compiler accepts: tensors
 * that move to the host's memory come back with the same bits. Others with {@code
 * -Dsymplan.seed=N}.
 */
@Tag("random")
class MovedTensorsTest {
  private static final long SEED = Fuzz.seed(64_000);
  private static final int PROGRAMS = Fuzz.times(150);

  @Test
  void tensorsThatMoveComeBack() {
    int moved = 0;
    int both = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var random = new Random(seed);
      int ranks = 2 + random.nextInt(3);
      // Some say themselves what moves.
      var text =
          random.nextInt(8) == 0
              ? SavedTensors.moved(random, ranks)
              : SavedTensors.text(random, ranks);
      var whole = GraphParser.parse(new SourceFile("step.graph", text));
      var program = random.nextBoolean() ? Cuts.cut(whole, random) : whole;
      var options = CompileOptions.DEFAULT.withRanks(ranks).withOverlap(random.nextInt(4) > 0);
      var made = new FuzzCase(program, Target.H200_X4, options, ImmutableMap.of(), seed);
      var low = made.inLeastMemory();
      long least = low.options().memoryLimit().orElseThrow();
      // With a little more than the least, copies have compute beside them, and fewer are made.
      long limit = least + (random.nextBoolean() ? random.nextLong(least) : 0);
      var outcome =
          Differential.check(low.with(low.options().withMemoryLimit(OptionalLong.of(limit))));
      assertThat(outcome.finding()).as("seed %s%n%s", seed, text).isEmpty();
      assertThat(outcome.refused()).as("seed %s%n%s", seed, text).isEmpty();
      var plan = outcome.plan().orElseThrow();
      boolean moves = plan.rewrites().stream().anyMatch(one -> one.action() == Action.OFFLOADED);
      moved += moves ? 1 : 0;
      both += moves && text.contains("symplan::offload(") ? 1 : 0;
    }
    System.out.println(
        "tensors of %s of %s programs move, from seed %s; %s move others themselves"
            .formatted(moved, PROGRAMS, SEED, both));
    assertThat(moved).isGreaterThan(PROGRAMS / 2);
    assertThat(both).isPositive();
  }
}
