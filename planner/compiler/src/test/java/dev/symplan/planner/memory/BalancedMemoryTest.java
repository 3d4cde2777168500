package dev.symplan.planner.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Balanced plans of graphs as Inductor captures them take no more memory than a {@linkplain
 * CachedMemory model} of PyTorch's allocator says that PyTorch would. The allocator does not count
 * the buffers of NCCL, so workspaces of collectives, which stand for those, are not counted either
 * where they are a large part of the whole.
 */
class BalancedMemoryTest {
  private static final Path GRAPHS = Path.of("src/test/resources/dev/symplan/planner/memory");
  private static final int RANKS = 4;

  /** From so many bytes on, workspaces count. */
  private static final long MUCH = 64L << 20;

  @Test
  void isNotMoreThanThatOfPyTorch() throws IOException {
    int graphs = 0;
    int large = 0;
    try (var files = Files.list(GRAPHS)) {
      for (var file : files.sorted().toList()) {
        var options = CompileOptions.DEFAULT.withRanks(RANKS);
        var program = ProgramReader.read(file, options, _ -> {});
        long most = CachedMemory.peak(program.graphs().getFirst());
        for (var target : List.of(Target.H200_X4, Target.ofName("h100x8").orElseThrow())) {
          var plan = Compiler.forTarget(target).with(options).compile(program);
          long all = plan.total().bytes();
          assertThat(most >= MUCH ? all : all - workspaces(plan))
              .as("%s on %s", file.getFileName(), target.name())
              .isLessThanOrEqualTo(most);
        }
        graphs++;
        large += most >= MUCH ? 1 : 0;
      }
    }
    assertThat(graphs).isGreaterThanOrEqualTo(5);
    assertThat(large).isPositive();
  }

  private static long workspaces(Plan plan) {
    return plan.forRank(0).collectives().stream()
        .mapToInt(CollectivePlan::workspace)
        .filter(buffer -> buffer != CollectivePlan.NO_WORKSPACE)
        .distinct()
        .mapToLong(buffer -> plan.forRank(0).buffers().get(buffer).bytes())
        .sum();
  }
}
