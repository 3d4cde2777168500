package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.ArgDecision.Reason;
import dev.symplan.runtime.Session;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Collectives of parts of tensors, whose rows other elements separate, give the bits of the
 * reference, without a copy where the variant reads rows. Others with {@code -Dsymplan.seed=N},
 * more with {@code -Dfuzz=N}.
 */
@Tag("random")
class PartOperandsTest {
  private static final long SEED = Fuzz.seed(1_900);

  private final Set<String> found = ConcurrentHashMap.newKeySet();

  @Test
  void giveTheBitsOfTheReference() {
    Fuzz.each(300, this::check);
    assertThat(found)
        .containsAll(
            List.of(
                "all_reduce ONE_SHOT true",
                "all_reduce TWO_SHOT true",
                "all_reduce ONE_SHOT_PUSH true",
                "all_reduce TWO_SHOT_PUSH true",
                "all_reduce NCCL false",
                "all_gather ONE_SHOT true",
                "all_gather PUSH true",
                "all_gather COPY_ENGINE true",
                "all_reduce TWO_SHOT_PUSH false",
                "all_gather PUSH true in any order",
                "all_gather COPY_ENGINE false",
                "reduce_scatter ONE_SHOT true",
                "reduce_scatter ONE_SHOT true in any order",
                "all_to_all ONE_SHOT true in any order",
                "all_to_all PUSH true in any order",
                "all_to_all PUSH true",
                "all_to_all PUSH false",
                "all_to_all COPY_ENGINE true",
                "broadcast ONE_SHOT true",
                "broadcast TWO_SHOT true",
                "broadcast COPY_ENGINE true",
                "collective_permute ONE_SHOT true",
                "collective_permute PUSH true",
                "collective_permute COPY_ENGINE true"));
  }

  private void check(int number) {
    long seed = SEED + number;
    var random = new Random(seed);
    var drawn = PartProgram.draw(random);
    var what = "seed %s%n%s%n%s".formatted(seed, drawn.variant(), drawn.text());
    var parsed = GraphParser.parse(new SourceFile("part.graph", drawn.text()));
    var plan = Compiler.forTarget(Target.H200_X4).with(drawn.options()).compile(parsed);
    var collective = plan.forRank(0).collectives().getFirst();
    assertThat(collective.args().getFirst().reason() == Reason.READS_ROWS)
        .as(what)
        .isEqualTo(drawn.inRows());
    found.add(
        "%s %s %s%s"
            .formatted(
                drawn.kind(),
                drawn.variant(),
                drawn.inRows(),
                drawn.inRows() && !drawn.even() ? " in any order" : ""));
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      for (int run = 0; run < 2; run++) {
        Programs.runsAsReference(
            session, Collections.nCopies(drawn.ranks(), parsed.graphs().getFirst()), plan, what);
      }
    }
  }
}
