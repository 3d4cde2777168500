package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.runtime.cuda.Architecture.Target;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Which kernels a program has on which GPUs. */
class ArchitectureTest {
  private static final Architecture AMPERE = new Architecture(80);
  private static final Architecture HOPPER = new Architecture(90);
  private static final Architecture BLACKWELL = new Architecture(100);

  private static List<DeviceStep> steps() {
    return Stream.of(
            LocalPrograms.products(),
            LocalPrograms.fewTokens(),
            LocalPrograms.shortFloats(),
            LocalPrograms.pairedProducts(),
            LocalPrograms.tokenProducts(),
            LocalPrograms.groupedProducts())
        .flatMap(List::stream)
        .map(LocalPrograms::plan)
        .flatMap(plan -> DeviceLowering.lower(Lowering.lower(plan)).stream())
        .flatMap(program -> program.steps().stream())
        .toList();
  }

  private static ImmutableSet<Target> targets(Architecture architecture, DeviceStep step) {
    return architecture.targets(
        new DeviceProgram(0, ImmutableList.of(step), ImmutableIntArray.of(0), 0, 0));
  }

  @Test
  void kernelsForHopperAloneAreCompiledForIt() {
    var both =
        steps().stream().filter(HopperLaunch.class::isInstance).map(HopperLaunch.class::cast);
    assertThat(both)
        .isNotEmpty()
        .allSatisfy(
            step -> {
              assertThat(targets(HOPPER, step))
                  .containsExactly(new Target(step.launch().kernel(), "sm_90a"));
              for (var other : List.of(AMPERE, BLACKWELL)) {
                assertThat(targets(other, step))
                    .containsExactlyElementsOf(
                        step.otherwise().stream()
                            .flatMap(instead -> instead.launches().stream())
                            .map(launch -> new Target(launch.kernel(), "sm_" + other.number()))
                            .toList());
              }
            });
  }

  @Test
  void pairsOfProductsAreOneLaunchOnHopperGpus() {
    for (var text : LocalPrograms.pairedProducts()) {
      var program = DeviceLowering.lower(Lowering.lower(LocalPrograms.plan(text))).getFirst();
      assertThat(program.steps())
          .singleElement()
          .isInstanceOfSatisfying(
              HopperLaunch.class,
              pair -> {
                assertThat(pair.otherwise().stream().filter(Product.class::isInstance)).hasSize(2);
                assertThat(pair.launch().shares()).hasSize(3);
              });
    }
  }

  @Test
  void productsOfFewTokensAreKernelsOfOurs() {
    for (var text : LocalPrograms.fewTokens()) {
      var program = DeviceLowering.lower(Lowering.lower(LocalPrograms.plan(text))).getFirst();
      assertThat(program.steps()).as(text).noneMatch(Product.class::isInstance);
    }
  }

  @Test
  void productsOfTokensAreOneLaunchOnHopperGpus() {
    for (var text : LocalPrograms.tokenProducts()) {
      var program = DeviceLowering.lower(Lowering.lower(LocalPrograms.plan(text))).getFirst();
      assertThat(program.steps())
          .singleElement()
          .isInstanceOfSatisfying(
              HopperLaunch.class,
              both ->
                  assertThat(both.otherwise())
                      .singleElement()
                      .isInstanceOfAny(Product.class, Launch.class));
    }
  }

  @Test
  void otherKernelsAreCompiledForTheGpu() {
    var launches = steps().stream().filter(Launch.class::isInstance).map(Launch.class::cast);
    assertThat(launches)
        .isNotEmpty()
        .allSatisfy(
            launch ->
                assertThat(targets(BLACKWELL, launch))
                    .containsExactly(new Target(launch.kernel(), "sm_100")));
  }

  @Test
  void kernelsThatOnlyReplaceWhatALibraryRefusesWait() {
    var products = steps().stream().filter(Product.class::isInstance);
    assertThat(products)
        .isNotEmpty()
        .anySatisfy(step -> assertThat(step.launches()).isNotEmpty())
        .allSatisfy(step -> assertThat(targets(HOPPER, step)).isEmpty());
  }

  @Test
  void kernelsBeginEarlyFromHopperOn() {
    assertThat(AMPERE.hasDependentLaunches()).isFalse();
    assertThat(HOPPER.hasDependentLaunches()).isTrue();
    assertThat(BLACKWELL.hasDependentLaunches()).isTrue();
  }
}
