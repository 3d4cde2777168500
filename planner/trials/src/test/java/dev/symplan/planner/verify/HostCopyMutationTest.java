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
    return seed % 4 == 0 ? asked(new Random(seed)) : inLeastMemory(new Random(seed));
  }

  /** The graph itself says what is in the host's memory. */
  private static Plan asked(Random random) {
    var text = SavedTensors.moved(random, 2);
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(2).withOverlap(random.nextBoolean()))
        .compile(GraphParser.parse(new SourceFile("step.graph", text)));
  }

  private static Plan inLeastMemory(Random random) {
    var whole = GraphParser.parse(new SourceFile("step.graph", SavedTensors.text(random, 2)));
    Program program = random.nextInt(3) == 0 ? Cuts.cut(whole, random) : whole;
    var compiler = Compiler.forTarget(Target.H200_X4);
    var options = CompileOptions.DEFAULT.withRanks(2).withOverlap(random.nextBoolean());
    OptionalLong least =
        LeastMemory.of(
            bytes ->
                compiler.with(options.withMemoryLimit(OptionalLong.of(bytes))).compile(program));
    return compiler.with(options.withMemoryLimit(least)).compile(program);
  }

  @Test
  void unsafeMutationsAreRejected() {
    var random = new Random(SEED);
    var missed = new ArrayList<String>();
    int unsafe = 0;
    int offloaded = 0;
    int plans = 0;
    for (long seed = SEED; unsafe < UNSAFE; seed++, plans++) {
      var plan = plan(seed);
      var oracle = new PlanOracle(plan);
      assertThat(oracle.unsafe(plan)).as("seed %s", seed).isEmpty();
      offloaded += plan.forRank(0).hostBytes() > 0 ? 1 : 0;
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
    assertThat(missed).isEmpty();
  }
}
