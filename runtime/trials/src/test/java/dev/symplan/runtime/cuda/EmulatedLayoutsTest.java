package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.host.LayoutProgram;
import dev.symplan.runtime.host.PackProgram;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The kernels of random programs of collectives with copies around them, all ranks' threads at
 * once, give the bits of the host backend. More with {@code -Dfuzz=N}.
 */
@Tag("random")
class EmulatedLayoutsTest {
  private static final long SEED = Fuzz.seed(19_000);
  private static final long MAX_TURNS = 400_000_000;

  private final AtomicInteger compared = new AtomicInteger();

  @Test
  void randomProgramsGiveTheBitsOfTheHost() {
    Fuzz.each(8, this::check);
    assertThat(compared.get()).isGreaterThan(Fuzz.times(4));
  }

  private void check(int number) {
    long seed = SEED + number;
    var random = new Random(seed);
    var drawn = number % 2 == 0 ? LayoutProgram.draw(random) : PackProgram.draw(random);
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(drawn.options(random))
            .compile(GraphParser.parse(new SourceFile("layout.graph", drawn.text())));
    if (plan.forRank(0).collectives().stream().noneMatch(c -> c.variant() == Variant.NCCL)) {
      compared.incrementAndGet();
      compare(plan, seed, drawn.text());
    }
  }

  private static void compare(Plan plan, long seed, String text) {
    var executable = Lowering.lower(plan);
    var gpus = new EmulatedGpus(executable, 2, kernel -> kernel);
    try (var host = Session.open(plan, new HostBackend())) {
      gpus.assertAsHost(host, executable, seed, MAX_TURNS, text);
    }
  }
}
