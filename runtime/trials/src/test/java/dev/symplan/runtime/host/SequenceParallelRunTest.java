package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import dev.symplan.runtime.Session;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Ops on shares of the rows give the bits that they give on all rows, where no sum is rounded. */
class SequenceParallelRunTest {
  private static final long SEED = Fuzz.seed(27_000_000);

  private final Map<Reason, Integer> refused = new EnumMap<>(Reason.class);
  private int made;

  @Test
  void sharesGiveTheSameBits() {
    Fuzz.each(400, number -> check(SEED + number));
    assertThat(made).isGreaterThan(Fuzz.times(100));
    assertThat(refused.keySet()).contains(Reason.MAY_DIFFER, Reason.NEEDED_WHOLE, Reason.UNEVEN);
  }

  private void check(long seed) {
    var random = new Random(seed);
    var program = ResidualProgram.draw(random);
    var what = "seed %s, replicated %s%n%s".formatted(seed, program.replicated(), program.text());
    var parsed = GraphParser.parse(new SourceFile("residual.graph", program.text()));
    var modes = Mode.values();
    var rewrites =
        new RewriteOptions(
            modes[random.nextInt(3)],
            modes[random.nextInt(3)],
            modes[random.nextInt(3)],
            Mode.AUTO,
            Mode.ON);
    var options =
        CompileOptions.DEFAULT
            .withRewrites(rewrites)
            .withReplicated(program.replicated())
            .withOverlap(random.nextInt(4) > 0);
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(parsed);
    note(plan);
    var json = PlanFile.toJson(plan);
    assertThat(PlanFile.toJson(PlanFile.read(new SourceFile("read.plan", json)))).isEqualTo(json);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillExactly(session, random);
      replicate(session, program.replicated());
      Programs.runsAsReference(
          session, Collections.nCopies(plan.worldSize(), parsed.graphs().getFirst()), plan, what);
    }
  }

  private static void replicate(Session session, Set<String> names) {
    for (int i = 0; i < session.inputNames(0).size(); i++) {
      if (names.contains(session.inputNames(0).get(i))) {
        for (int rank = 1; rank < session.ranks(); rank++) {
          session.input(rank, i).orElseThrow().copyFrom(session.input(0, i).orElseThrow());
        }
      }
    }
  }

  private void note(Plan plan) {
    for (Rewrite rewrite : plan.rewrites()) {
      if (rewrite.action() == Action.REPLICATED) {
        refused.merge(rewrite.reason(), 1, Integer::sum);
      }
      made += rewrite.action() == Action.SEQUENCE_PARALLEL ? 1 : 0;
    }
  }
}
