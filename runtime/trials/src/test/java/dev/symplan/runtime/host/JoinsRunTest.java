package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.runtime.Session;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Results of collectives that are written where they are joined with others give the bits of the
 * program as it is written. Others with {@code -Dsymplan.seed=N}, more with {@code -Dfuzz=N}.
 */
@Tag("random")
class JoinsRunTest {
  private static final long SEED = Fuzz.seed(190);

  private final Set<String> found = ConcurrentHashMap.newKeySet();
  private final AtomicInteger copied = new AtomicInteger();

  @Test
  void randomProgramsGiveTheSameBits() {
    Fuzz.each(800, this::check);
    assertThat(found)
        .containsAll(
            Arrays.stream(Kind.values())
                .flatMap(kind -> VariantSpec.ofKind(kind).stream())
                .filter(VariantSpec::writesRows)
                .map(spec -> spec.kind() + " " + spec.variant())
                .toList());
    assertThat(copied.get()).as("programs whose pieces are copied").isGreaterThan(Fuzz.times(50));
  }

  private void check(int number) {
    long seed = SEED + number;
    var random = new Random(seed);
    var drawn = JoinProgram.draw(random);
    var what = "seed %s, %s%n%s".formatted(seed, drawn.variant(), drawn.text());
    var parsed = GraphParser.parse(new SourceFile("joined.graph", drawn.text()));
    var plan = Compiler.forTarget(Target.H200_X4).with(drawn.options()).compile(parsed);
    if (hasRows(plan.forRank(0))) {
      found.add(drawn.kind() + " " + drawn.variant());
    } else {
      copied.incrementAndGet();
    }
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      for (int run = 0; run < 2; run++) {
        Programs.runsAsReference(
            session, Collections.nCopies(drawn.ranks(), parsed.graphs().getFirst()), plan, what);
      }
    }
  }

  private static boolean hasRows(RankPlan plan) {
    return plan.graph().values().stream()
        .filter(Value::isTensor)
        .anyMatch(value -> plan.placement(value).isInRows());
  }
}
