package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.host.JoinProgram;
import dev.symplan.runtime.host.LayoutProgram;
import dev.symplan.runtime.host.NeighbourProgram;
import dev.symplan.runtime.host.PackProgram;
import dev.symplan.runtime.host.PartProgram;
import java.util.Random;
import java.util.function.LongFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The kernels of random programs of collectives with copies around them, all ranks' threads at
 * once, give the bits of the host backend. More with {@code -Dfuzz=N}, which compiles the kernels
 * of many programs together.
 */
@Tag("random")
class EmulatedLayoutsTest {
  private static final long SEED = Fuzz.seed(19_000);
  private static final long MAX_TURNS = 400_000_000;
  private static final int PROGRAMS = Fuzz.times(16);

  /** The programs whose kernels are compiled together. */
  private static final int TOGETHER = 200;

  private record Case(long seed, String text, Plan plan, Executable executable) {}

  @Test
  void randomProgramsGiveTheBitsOfTheHost() {
    compare(
        seed -> {
          var random = new Random(seed);
          var drawn = seed % 2 == 0 ? LayoutProgram.draw(random) : PackProgram.draw(random);
          return plan(seed, drawn.text(), drawn.options(random));
        });
  }

  @Test
  void randomProgramsWithNeighboursGiveTheBitsOfTheHost() {
    compare(
        seed -> {
          var random = new Random(seed);
          var drawn = NeighbourProgram.draw(random);
          return plan(seed, drawn.text(), drawn.options(random));
        });
  }

  @Test
  void randomProgramsOfPartsGiveTheBitsOfTheHost() {
    compare(
        seed -> {
          var drawn = PartProgram.draw(new Random(seed));
          return plan(seed, drawn.text(), drawn.options());
        });
  }

  @Test
  void randomProgramsOfJoinedResultsGiveTheBitsOfTheHost() {
    compare(
        seed -> {
          var drawn = JoinProgram.draw(new Random(seed));
          return plan(seed, drawn.text(), drawn.options());
        });
  }

  private static Case plan(long seed, String text, CompileOptions options) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(options)
            .compile(GraphParser.parse(new SourceFile("layout.graph", text)));
    return new Case(seed, text, plan, Lowering.lower(plan));
  }

  /** NCCL is not emulated. */
  private static boolean isEmulated(Case made) {
    return made.plan().rankPlans().stream()
        .flatMap(rank -> rank.collectives().stream())
        .noneMatch(collective -> collective.variant() == Variant.NCCL);
  }

  private static void compare(LongFunction<Case> programs) {
    int compared = 0;
    for (int first = 0; first < PROGRAMS; first += TOGETHER) {
      var cases =
          LongStream.range(SEED + first, SEED + Math.min(PROGRAMS, first + TOGETHER))
              .mapToObj(programs)
              .filter(EmulatedLayoutsTest::isEmulated)
              .toList();
      var all = EmulatedGpus.of(cases.stream().map(Case::executable).toList(), 2);
      for (int i = 0; i < cases.size(); i++) {
        var made = cases.get(i);
        try (var host = Session.open(made.plan(), new HostBackend())) {
          all.get(i).assertAsHost(host, made.executable(), made.seed(), MAX_TURNS, made.text());
        }
      }
      compared += cases.size();
    }
    assertThat(compared).isGreaterThan(PROGRAMS / 2);
  }
}
