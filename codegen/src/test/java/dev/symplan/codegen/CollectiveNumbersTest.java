package dev.symplan.codegen;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** In stages with different collectives, ranks that meet have the same numbers for these. */
@Tag("random")
class CollectiveNumbersTest {
  private static final long SEED = Fuzz.seed(22_990_000);

  private int several;

  @Test
  void ranksThatMeetHaveOneNumber() {
    Fuzz.each(60, number -> check(SEED + number));
    assertThat(several).isPositive();
  }

  private void check(long seed) {
    var program = StageProgram.draw(new Random(seed), 3, List.of(DType.F32, DType.BF16));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withHosts(new Hosts(program.hosts())))
            .compile(GraphParser.parse(new SourceFile("stages.graph", program.text())));
    several += plan.rankPlans().size() > 1 ? 1 : 0;
    var executable = Lowering.lower(plan);
    var transfers = new Transfers(executable);
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      var own = transfers.ofRank(rank).asList();
      assertThat(own.stream().map(collective -> collective.group().index()).toList())
          .as("seed %s", seed)
          .isSorted()
          .doesNotHaveDuplicates();
      for (var collective : own) {
        for (int member = 0; member < collective.group().members().length(); member++) {
          var other = transfers.at(member, collective);
          assertThat(other.group().members()).isEqualTo(collective.group().members());
          assertThat(other.kind()).isEqualTo(collective.kind());
          assertThat(other.variant()).isEqualTo(collective.variant());
        }
      }
    }
    assertThat(Agreement.firstDifference(Agreement.of(executable))).isEmpty();
    assertThat(DeviceLowering.lower(executable)).hasSize(plan.worldSize());
  }
}
