package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Session;
import java.util.Collections;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Collectives with ops that may run in their kernels give the bits of the program as it is written.
 * Others with {@code -Dsymplan.seed=N}, more with {@code -Dfuzz=N}.
 */
@Tag("random")
class NeighboursRunTest {
  private static final long SEED = Fuzz.seed(1_900);

  private final AtomicInteger epilogues = new AtomicInteger();
  private final AtomicInteger stored = new AtomicInteger();

  @Test
  void randomProgramsGiveTheSameBits() {
    Fuzz.each(600, this::check);
    assertThat(epilogues.get()).as("epilogues").isGreaterThan(Fuzz.times(200));
    assertThat(stored.get())
        .as("sums that are read later")
        .isBetween(Fuzz.times(10), epilogues.get() - 1);
  }

  private void check(int number) {
    long seed = SEED + number;
    var random = new Random(seed);
    var drawn = NeighbourProgram.draw(random);
    var what = "seed %s%n%s".formatted(seed, drawn.text());
    var parsed = GraphParser.parse(new SourceFile("neighbours.graph", drawn.text()));
    var plan = Compiler.forTarget(Target.H200_X4).with(drawn.options(random)).compile(parsed);
    for (var collective : plan.forRank(0).collectives()) {
      if (collective.hasEpilogue()) {
        epilogues.incrementAndGet();
        stored.addAndGet(collective.epilogue().orElseThrow().stored() ? 1 : 0);
      }
    }
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      Programs.runsAsReference(
          session, Collections.nCopies(drawn.ranks(), parsed.graphs().getFirst()), plan, what);
    }
  }
}
