package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.testkit.Fuzz;
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

/** More, or others, with {@code -Dsymplan.mutations=N -Dsymplan.seed=N}. */
@Tag("random")
class PlanMutationTest {
  private static final int UNSAFE = Integer.getInteger("symplan.mutations", Fuzz.times(10_000));
  private static final long SEED = Fuzz.seed(7_000_000);
  private static final int PER_PLAN = 12;

  private static final class Count {
    int unsafe;
    int missed;
    int equivalent;
    int equivalentAccepted;
  }

  private final Map<Kind, Count> counts = new EnumMap<>(Kind.class);
  private final List<String> missed = new ArrayList<>();

  @Test
  void unsafeMutationsAreRejected() {
    var random = new Random(SEED);
    int unsafe = 0;
    long seed = SEED;
    while (unsafe < UNSAFE) {
      seed++;
      var plan = plan(seed);
      if (plan.isEmpty()) {
        continue;
      }
      var oracle = new PlanOracle(plan.get());
      assertThat(oracle.unsafe(plan.get())).as("seed %s", seed).isEmpty();
      for (int i = 0; i < PER_PLAN; i++) {
        var kind = Kind.values()[random.nextInt(Kind.values().length)];
        var mutant = PlanMutator.mutate(plan.get(), kind, random);
        if (mutant.isPresent()) {
          unsafe += judge(seed, kind, oracle, mutant.get()) ? 1 : 0;
        }
      }
    }
    report(seed, unsafe);
    assertThat(missed.size()).as("missed: %s", missed).isLessThanOrEqualTo(UNSAFE / 1000);
  }

  private static Optional<Plan> plan(long seed) {
    try {
      return Optional.of(RandomPrograms.plan(seed));
    } catch (CompileException e) {
      // Outputs that the ranks cannot have in symmetric memory alike.
      return Optional.empty();
    }
  }

  private boolean judge(long seed, Kind kind, PlanOracle oracle, Plan mutant) {
    var count = counts.computeIfAbsent(kind, k -> new Count());
    var why = kind.isStatement() ? Optional.of("a false statement") : oracle.unsafe(mutant);
    boolean accepted = PlanVerifier.verify(mutant).isEmpty();
    if (why.isEmpty()) {
      count.equivalent++;
      count.equivalentAccepted += accepted ? 1 : 0;
      return false;
    }
    count.unsafe++;
    if (accepted) {
      count.missed++;
      missed.add("seed %s %s: %s".formatted(seed, kind, why.get()));
    }
    return true;
  }

  private void report(long lastSeed, int unsafe) {
    var table = new StringBuilder();
    table.append("mutations of plans from seeds %s to %s\n".formatted(SEED + 1, lastSeed));
    table.append("kind              unsafe  missed  harmless  of these accepted\n");
    counts.forEach(
        (kind, c) ->
            table.append(
                "%-16s  %6d  %6d  %8d  %8d\n"
                    .formatted(kind, c.unsafe, c.missed, c.equivalent, c.equivalentAccepted)));
    table.append("%s of %s unsafe ones rejected".formatted(unsafe - missed.size(), unsafe));
    missed.forEach(one -> table.append("\nmissed: ").append(one));
    System.out.println(table);
  }
}
