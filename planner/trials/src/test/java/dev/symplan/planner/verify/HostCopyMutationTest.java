package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.testkit.SavedTensors;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.verify.PlanMutator.Kind;
import java.util.ArrayList;
import java.util.OptionalLong;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Plans in the least memory, and of graphs that ask for it, whose tensors move to the host's memory
 * and back: the verifier finds every change that an execution with late copies shows to be unsafe.
 * More, or others, with {@code -Dsymplan.mutations=N -Dsymplan.seed=N}.
 */
@Tag("random")
class HostCopyMutationTest {
  private static final int UNSAFE = Integer.getInteger("symplan.mutations", Fuzz.times(1500));
  private static final long SEED = Fuzz.seed(31_000_000);
  private static final int PER_PLAN = 40;

  private static Plan plan(long seed) {
    var random = new Random(seed);
    // Some graphs say themselves what is in the host's memory.
    var text = seed % 4 == 0 ? SavedTensors.moved(random, 2) : SavedTensors.text(random, 2);
    var whole = GraphParser.parse(new SourceFile("step.graph", text));
    var program = random.nextInt(3) == 0 ? Cuts.cut(whole, random) : whole;
    var options = CompileOptions.DEFAULT.withRanks(2).withOverlap(random.nextBoolean());
    return seed % 8 == 0 ? compile(program, options) : inLeastMemory(program, options);
  }

  private static Plan inLeastMemory(Program program, CompileOptions options) {
    var least =
        LeastMemory.of(bytes -> compile(program, options.withMemoryLimit(OptionalLong.of(bytes))));
    return compile(program, options.withMemoryLimit(least));
  }

  private static Plan compile(Program program, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }

  @Test
  void unsafeMutationsAreRejected() {
    var random = new Random(SEED);
    var missed = new ArrayList<String>();
    int unsafe = 0;
    int offloaded = 0;
    int both = 0;
    int plans = 0;
    for (long seed = SEED; unsafe < UNSAFE; seed++, plans++) {
      var plan = plan(seed);
      var oracle = new PlanOracle(plan);
      assertThat(oracle.unsafe(plan)).as("seed %s", seed).isEmpty();
      boolean moves = plan.rewrites().stream().anyMatch(one -> one.action() == Action.OFFLOADED);
      offloaded += plan.forRank(0).hostBytes() > 0 ? 1 : 0;
      both += moves && seed % 4 == 0 ? 1 : 0;
      for (int i = 0; i < PER_PLAN; i++) {
        var kind = Kind.values()[random.nextInt(Kind.values().length)];
        var mutant = PlanMutator.mutate(plan, kind, random);
        if (mutant.isEmpty() || kind.isStatement()) {
          continue;
        }
        var why = oracle.unsafe(mutant.get());
        unsafe += why.isPresent() ? 1 : 0;
        if (why.isPresent() && PlanVerifier.verify(mutant.get()).isEmpty()) {
          missed.add("seed %s %s: %s".formatted(seed, kind, why.get()));
        }
      }
    }
    System.out.println(
        offloaded + " of " + plans + " plans have tensors in the host's memory, from seed " + SEED);
    assertThat(offloaded).isGreaterThan(plans / 2);
    assertThat(both).as("plans that move more than the graph asks for").isPositive();
    assertThat(missed).isEmpty();
  }
}
