package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSetMultimap;
import com.google.common.collect.Sets;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Case;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** PyTorch's collectives and MLPs, each kind of collective as every variant that it can be. */
@Tag("gpu")
class CaseVariantsOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  private static Stream<String> cases() {
    return Stream.of(
        "allreduce_relu",
        "reduce_ops",
        "mesh_2d",
        "moe",
        "sp_mlp",
        "tp_mlp_f32",
        "tp_mlp_bf16",
        "fsdp_mlp_train_fwd",
        "fsdp_mlp_train_bwd");
  }

  /** A collective that takes over copies around it has fewer variants. */
  private static final CompileOptions UNFOLDED =
      CompileOptions.DEFAULT.withRewrites(RewriteOptions.AUTO.withLayouts(RewriteOptions.Mode.OFF));

  static Stream<Arguments> variants() {
    return cases()
        .flatMap(
            name ->
                eligible(EmulatedCasesTest.plan(EmulatedCasesTest.folder(name), UNFOLDED))
                    .entries()
                    .stream()
                    .map(entry -> Arguments.of(name, entry.getKey(), entry.getValue())));
  }

  /** {@return the variants that all collectives of a kind can have} */
  private static ImmutableSetMultimap<Kind, Variant> eligible(Plan plan) {
    Map<Kind, Set<Variant>> eligible = new EnumMap<>(Kind.class);
    for (var collective : plan.forRank(0).collectives()) {
      var variants =
          collective.verdicts().stream()
              .filter(verdict -> verdict.reason().eligible())
              .map(Verdict::variant)
              .collect(Collectors.toSet());
      eligible.merge(collective.kind(), variants, Sets::intersection);
    }
    var result = ImmutableSetMultimap.<Kind, Variant>builder();
    eligible.forEach(result::putAll);
    return result.build();
  }

  @ParameterizedTest
  @MethodSource("variants")
  void givesWhatPyTorchGave(String name, Kind kind, Variant variant) {
    Gpus.require(4);
    var folder = EmulatedCasesTest.folder(name);
    var plan = forced(name, kind, variant);
    try (var session = CudaSession.open(Lowering.lower(plan), TIMEOUT)) {
      EmulatedCasesTest.check(new Case(folder), plan, session);
    }
  }

  /** Also where there are no GPUs: what they are to run is what was asked for. */
  @ParameterizedTest
  @MethodSource("variants")
  void isPlannedAsThat(String name, Kind kind, Variant variant) {
    assertThat(forced(name, kind, variant).forRank(0).collectives())
        .filteredOn(collective -> collective.kind() == kind)
        .isNotEmpty()
        .allMatch(collective -> collective.variant() == variant);
  }

  private static Plan forced(String name, Kind kind, Variant variant) {
    return EmulatedCasesTest.plan(
        EmulatedCasesTest.folder(name),
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of(kind.text(), variant)));
  }

  @Test
  void everyVariantIsAmongThem() {
    assertThat(variants().map(arguments -> arguments.get()[2]))
        .contains(
            Variant.ONE_SHOT,
            Variant.ONE_SHOT_PUSH,
            Variant.TWO_SHOT,
            Variant.TWO_SHOT_PUSH,
            Variant.PUSH,
            Variant.COPY_ENGINE,
            Variant.NCCL,
            Variant.NCCL_SYMM,
            Variant.NCCL_CE);
  }
}
