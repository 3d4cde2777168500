package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.profile.ProfileTable;
import dev.symplan.runtime.profile.ProfileTrace;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProfileTest {

  @Test
  void ranksMeetAtTheEndOfTheFirstCollective() {
    var plan =
        BenchPrograms.plan(
            BenchPrograms.collective(Kind.ALL_REDUCE, DType.F32, 64, 2), Target.HOST);
    var aligned =
        Alignment.of(
            Lowering.lower(plan),
            List.of(
                ImmutableList.of(activity(0, "a", 0, 5), activity(0, "r0", 5, 9)),
                ImmutableList.of(activity(1, "a", 100, 101), activity(1, "r0", 101, 120))));
    assertThat(aligned)
        .containsExactly(
            activity(0, "a", -9, -4),
            activity(0, "r0", -4, 0),
            activity(1, "a", -20, -19),
            activity(1, "r0", -19, 0));
  }

  private static Activity activity(int rank, String label, double begin, double end) {
    return new Activity(rank, StreamKind.COMPUTE, label, "k", begin, end);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          _Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE | ncclDevKernel_AllReduce_Sum_bf16_RING_LL
          nvjet_tst_128x256_64x4 | nvjet_tst_128x256_64x4
          _ZN7cutlass6KernelE | _ZN7cutlass6KernelE
          _Z9999x | _Z9999x
          """)
  void namesArePlain(String name, String plain) {
    assertThat(CapturedKernels.plain(name)).isEqualTo(plain);
  }

  /** Every step of a plan with products and collectives of ours and of NCCL's. */
  @Test
  @Tag("gpu")
  void tellsWhatRanWhen() {
    Gpus.require(2);
    var nccl = profile(Variant.NCCL);
    assertThat(nccl)
        .filteredOn(a -> a.label().startsWith("r"))
        .isNotEmpty()
        .allSatisfy(a -> assertThat(a.kernel()).contains("ncclDevKernel"));
    assertThat(profile(Variant.TWO_SHOT))
        .filteredOn(a -> a.label().startsWith("r"))
        .isNotEmpty()
        .allSatisfy(a -> assertThat(a.kernel()).startsWith("generated"));
  }

  private static List<Activity> profile(Variant variant) {
    Plan plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", variant)))
            .compile(BenchPrograms.chain(4, 2));
    try (var session = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10))) {
      for (int rank = 0; rank < session.ranks(); rank++) {
        SeededInputs.fill(session.input(rank, "x"), 1, rank, "x");
        SeededInputs.fill(session.input(rank, "w"), 1, rank, "w");
      }
      session.run();
      var profile = session.profile();
      System.out.println(ProfileTable.print(plan, profile));
      assertThat(ProfileTrace.toJson(plan, profile)).contains("\"rank 1\"");
      assertThat(profile.activities()).hasSize(2 * 8);
      assertThat(profile.activities()).allMatch(a -> a.micros() > 0.5 && a.micros() < 1e5);
      return profile.activities();
    }
  }
}
