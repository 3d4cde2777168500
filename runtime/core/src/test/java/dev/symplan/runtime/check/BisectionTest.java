package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.tensor.HostTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

/** The backend is broken in known ways; bisection must name them. */
class BisectionTest {
  private static final Path CASES =
      Path.of(System.getProperty("symplan.root")).resolve("samples/cases");

  /** {@return a backend that gives zeros for executables that it does not like} */
  private static Backend broken(Predicate<Executable> dislikes) {
    return new TamperedBackend(
        (executable, _, tensor) ->
            dislikes.test(executable) ? HostTensor.allocate(tensor.type()) : tensor);
  }

  private static boolean runs(Executable executable, String name, Variant... variants) {
    return executable.ranks().getFirst().instructions().stream()
        .anyMatch(
            instruction ->
                instruction instanceof Instruction.Collective collective
                    && collective.name().equals(name)
                    && List.of(variants).contains(collective.variant()));
  }

  private static boolean fuses(Executable executable) {
    return executable.ranks().getFirst().instructions().stream()
        .anyMatch(Instruction.Fused.class::isInstance);
  }

  private static Bisection.Outcome bisect(String name, Predicate<Executable> dislikes) {
    var runs = new ArrayList<String>();
    var outcome =
        Bisection.run(
            CASES.resolve(name), Compiler.forTarget(Target.H200_X4), broken(dislikes), runs::add);
    assertThat(runs).hasSizeLessThan(40);
    return outcome;
  }

  private static List<String> found(Bisection.Outcome outcome) {
    assertThat(outcome).isInstanceOf(Bisection.Outcome.Found.class);
    return ((Bisection.Outcome.Found) outcome)
        .decisions().stream().map(Bisection.Decision::flag).toList();
  }

  @Test
  void whatAgreesHasNoCulprit() {
    assertThat(bisect("sp_mlp", executable -> false)).isEqualTo(new Bisection.Outcome.Agrees());
  }

  @Test
  void whatFailsAnywayIsNotThePlan() {
    assertThat(bisect("sp_mlp", executable -> true)).isEqualTo(new Bisection.Outcome.FailsAnyway());
  }

  @Test
  void findsTheVariantThatIsBroken() {
    assertThat(
            found(
                bisect(
                    "reduce_ops",
                    executable -> runs(executable, "all_reduce_5", Variant.ONE_SHOT_PUSH))))
        .containsExactly("--variant all_reduce_5=nccl");
  }

  @Test
  void findsTheSwitchThatIsBroken() {
    assertThat(found(bisect("sp_mlp", BisectionTest::fuses))).containsExactly("--no-fusion");
  }

  @Test
  void findsWhatFailsTogetherOnly() {
    assertThat(
            found(
                bisect(
                    "tp_mlp_bf16",
                    executable ->
                        fuses(executable)
                            && runs(executable, "all_reduce", Variant.ONE_SHOT_PUSH))))
        .containsExactlyInAnyOrder("--no-fusion", "--variant all_reduce=nccl");
  }
}
