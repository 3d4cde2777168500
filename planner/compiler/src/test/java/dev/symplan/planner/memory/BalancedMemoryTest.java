package dev.symplan.planner.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Balanced plans of graphs as Inductor captures them take no more memory than a {@linkplain
 * CachedMemory model} of PyTorch's allocator says that PyTorch would, workspaces of collectives
 * included. PyTorch's own does not count the buffers of NCCL.
 */
class BalancedMemoryTest {
  private static final Path GRAPHS = Path.of("src/test/resources/dev/symplan/planner/memory");
  private static final int RANKS = 4;

  @Test
  void isNotMoreThanThatOfPyTorch() throws IOException {
    int graphs = 0;
    try (var files = Files.list(GRAPHS)) {
      for (var file : files.sorted().toList()) {
        var options = CompileOptions.DEFAULT.withRanks(RANKS);
        var program = ProgramReader.read(file, options, _ -> {});
        long most = CachedMemory.peak(program.graphs().getFirst());
        for (var target : List.of(Target.H200_X4, Target.ofName("h100x8").orElseThrow())) {
          var plan = Compiler.forTarget(target).with(options).compile(program);
          assertThat(plan.total().bytes())
              .as("%s on %s", file.getFileName(), target.name())
              .isLessThanOrEqualTo(most);
        }
        graphs++;
      }
    }
    assertThat(graphs).isGreaterThanOrEqualTo(5);
  }
}
