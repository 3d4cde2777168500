package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.failure.RunException;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks whose programs do not fit each other are refused. */
@Timeout(60)
class HostAgreementTest {

  /** Peers read each other's operands, which must be where the plan says. */
  private static Plan pulled() {
    return Programs.plan(
        HostSessionTest.SUM,
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.ONE_SHOT)));
  }

  /** The executable with one collective of one rank changed. */
  private static Executable changed(int rank, UnaryOperator<Collective> change) {
    var executable = Lowering.lower(pulled());
    var ranks = ImmutableList.<RankProgram>builder();
    for (var program : executable.ranks()) {
      ranks.add(
          program.rank() != rank
              ? program
              : new RankProgram(
                  rank,
                  program.localBytes(),
                  program.inputs(),
                  program.inputNames(),
                  program.outputs(),
                  program.buffers(),
                  program.instructions().stream()
                      .map(i -> i instanceof Collective c ? change.apply(c) : i)
                      .collect(ImmutableList.toImmutableList()),
                  program.events()));
    }
    return new Executable(
        executable.name(), executable.symmetricBytes(), executable.digest(), ranks.build());
  }

  private static Collective moved(Collective c, Variant variant, TensorRef operand) {
    return new Collective(
        c.stream(),
        c.kind(),
        variant,
        c.group(),
        c.reduceOp(),
        c.root(),
        c.permutation(),
        c.sendRows(),
        c.receiveRows(),
        c.dims(),
        ImmutableList.of(operand),
        c.results(),
        c.startBarrier(),
        c.endBarrier(),
        c.workspace(),
        c.epilogue(),
        c.name(),
        c.span());
  }

  @Test
  void namesTheFirstDifferenceBetweenRanks() {
    var other =
        changed(
            2,
            c -> {
              var operand = c.operands().getFirst();
              return moved(
                  c,
                  c.variant(),
                  new TensorRef(operand.arena(), 0, operand.offset() + 64, operand.type()));
            });
    assertThatThrownBy(() -> new HostBackend().open(other))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("ranks 0 and 2 do not have the same plan")
        .hasMessageContaining("symm+0x0")
        .hasMessageContaining("symm+0x40")
        .hasMessageContaining("'r' (test.graph:5)");
  }

  @Test
  void keepsPeersOutOfLocalMemory() {
    UnaryOperator<Collective> local =
        c ->
            moved(
                c,
                c.variant(),
                new TensorRef(
                    dev.symplan.planner.plan.ArenaKind.EXTERNAL_INPUT,
                    0,
                    0,
                    c.operands().getFirst().type()));
    try (var session = new HostBackend().open(everywhere(local))) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("it is not in symmetric memory");
    }
  }

  private static Executable everywhere(UnaryOperator<Collective> change) {
    var executable = Lowering.lower(pulled());
    return new Executable(
        executable.name(),
        executable.symmetricBytes(),
        executable.digest(),
        executable.ranks().stream()
            .map(program -> changed(program.rank(), change).ranks().get(program.rank()))
            .collect(ImmutableList.toImmutableList()));
  }
}
