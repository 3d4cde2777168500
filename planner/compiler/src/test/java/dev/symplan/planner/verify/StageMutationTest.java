package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.PlanMutator.Kind;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The verifier finds what is wrong in plans of stages with different collectives, on hosts with
 * different numbers of ranks, as {@link PlanMutationTest} says of others. More, or others, with
 * {@code -Dsymplan.mutations=N -Dsymplan.seed=N}.
 */
@Tag("random")
class StageMutationTest {
  private static final int UNSAFE = Integer.getInteger("symplan.mutations", Fuzz.times(1500));
  private static final long SEED = Fuzz.seed(22_950_000);
  private static final int PER_PLAN = 12;

  private final Map<Kind, Integer> rejected = new EnumMap<>(Kind.class);
  private final List<String> missed = new ArrayList<>();

  private static Plan plan(Random random) {
    // The oracle knows elements of four bytes.
    var program = StageProgram.draw(random, 3, List.of(DType.F32, DType.I32));
    var modes = Mode.values();
    var options =
        CompileOptions.DEFAULT
            .withHosts(new Hosts(program.hosts()))
            .withRewrites(RewriteOptions.AUTO.withHierarchical(modes[random.nextInt(3)]))
            .withOverlap(random.nextInt(4) > 0);
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("stages.graph", program.text())));
  }

  @Test
  void unsafeMutationsAreRejected() {
    int unsafe = 0;
    int several = 0;
    for (long seed = SEED; unsafe < UNSAFE; seed++) {
      var random = new Random(seed);
      var plan = plan(random);
      several += plan.rankPlans().size() > 1 ? 1 : 0;
      var oracle = new PlanOracle(plan);
      assertThat(oracle.unsafe(plan)).as("seed %s", seed).isEmpty();
      for (int i = 0; i < PER_PLAN; i++) {
        var kind = Kind.values()[random.nextInt(Kind.values().length)];
        var mutant = PlanMutator.mutate(plan, kind, random);
        var why = mutant.flatMap(own -> why(kind, oracle, own));
        if (why.isPresent()) {
          unsafe++;
          if (PlanVerifier.verify(mutant.orElseThrow()).isEmpty()) {
            missed.add("seed %s %s %s: %s".formatted(seed, i, kind, why.get()));
          } else {
            rejected.merge(kind, 1, Integer::sum);
          }
        }
      }
    }
    System.out.println("rejected in plans of stages: " + rejected);
    assertThat(several).isPositive();
    assertThat(rejected.keySet())
        .contains(Kind.HOSTS, Kind.VARIANT, Kind.GROUP, Kind.SWAP_STEPS, Kind.OFFSET, Kind.BARRIER);
    assertThat(missed).isEmpty();
  }

  private static Optional<String> why(Kind kind, PlanOracle oracle, Plan mutant) {
    return kind.isStatement() ? Optional.of("a false statement") : oracle.unsafe(mutant);
  }
}
