package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.runtime.Session;
import java.util.Collections;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Collectives that move rows, or several tensors, in place of the copies around them give the bits
 * of the program as it is written. Others with {@code -Dsymplan.seed=N}, more with {@code
 * -Dfuzz=N}.
 */
@Tag("random")
class LayoutsRunTest {
  private static final long SEED = Fuzz.seed(19);

  private final AtomicInteger plain = new AtomicInteger();
  private final AtomicInteger others = new AtomicInteger();
  private final Set<String> folded = ConcurrentHashMap.newKeySet();

  @Test
  void randomProgramsGiveTheSameBits() {
    giveTheSameBits(
        LayoutProgram::draw,
        "all_gather ONE_SHOT",
        "all_gather PUSH",
        "all_gather COPY_ENGINE",
        "reduce_scatter ONE_SHOT",
        "reduce_scatter as another type",
        "all_to_all ONE_SHOT",
        "all_to_all PUSH",
        "all_to_all COPY_ENGINE");
  }

  @Test
  void randomProgramsOfPackedTensorsGiveTheSameBits() {
    giveTheSameBits(
        PackProgram::draw,
        "all_gather ONE_SHOT",
        "all_gather PUSH",
        "all_gather COPY_ENGINE",
        "reduce_scatter ONE_SHOT",
        "reduce_scatter as another type");
  }

  private void giveTheSameBits(Function<Random, LayoutProgram.Drawn> program, String... folds) {
    Fuzz.each(600, number -> check(number, program));
    assertThat(plain.get()).as("folds").isGreaterThan(Fuzz.times(200));
    assertThat(others.get()).as("programs whose copies stay").isGreaterThan(Fuzz.times(100));
    assertThat(folded).contains(folds);
  }

  private static boolean convertsWhatItReduces(RankPlan plan) {
    return plan.graph().ops().stream()
        .flatMap(op -> op.collective().stream())
        .anyMatch(call -> call.dtype().isPresent());
  }

  private void check(int number, Function<Random, LayoutProgram.Drawn> program) {
    long seed = SEED + number;
    var random = new Random(seed);
    var drawn = program.apply(random);
    var what = "seed %s%n%s".formatted(seed, drawn.text());
    var parsed = GraphParser.parse(new SourceFile("layout.graph", drawn.text()));
    var options = drawn.options(random);
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(parsed);
    boolean made = plan.rewrites().stream().anyMatch(Rewrite::made);
    assertThat(made).as(what).isEqualTo(drawn.plain().orElse(made));
    (made ? plain : others).incrementAndGet();
    if (made) {
      folded.add(drawn.kind() + " " + plan.forRank(0).collectives().getFirst().variant());
      if (convertsWhatItReduces(plan.forRank(0))) {
        folded.add(drawn.kind() + " as another type");
      }
    }
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      Programs.runsAsReference(
          session, Collections.nCopies(drawn.ranks(), parsed.graphs().getFirst()), plan, what);
    }
  }
}
