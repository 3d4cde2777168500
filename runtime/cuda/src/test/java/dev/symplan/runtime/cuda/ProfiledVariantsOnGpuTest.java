package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.profile.ProfileTable;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The variant of the plan really runs: NCCL, too, falls back without a word. */
@Tag("gpu")
class ProfiledVariantsOnGpuTest {
  private static final int COLLECTIVES = 3;
  private static final long BYTES = 1 << 16;

  /** The names of NCCL's kernels. It has none for all_to_all, but sends and receives. */
  private static final ImmutableMap<Kind, String> NAMES =
      ImmutableMap.of(
          Kind.ALL_REDUCE, "AllReduce",
          Kind.ALL_GATHER, "AllGather",
          Kind.REDUCE_SCATTER, "ReduceScatter",
          Kind.ALL_TO_ALL, "SendRecv",
          Kind.BROADCAST, "Broadcast",
          Kind.COLLECTIVE_PERMUTE, "SendRecv");

  @ParameterizedTest
  @MethodSource("dev.symplan.runtime.cuda.CollectivesOnGpuTest#variants")
  void eachCollectiveRunsAsItsVariant(Kind kind, Variant variant) {
    int ranks = Gpus.ranks();
    var sizes = Collections.nCopies(COLLECTIVES, BYTES);
    var plan =
        BenchPrograms.planApart(
            BenchPrograms.collectives(kind, DType.F32, sizes, ranks),
            GroupProgram.ROOMY,
            Topology.of(ranks, GroupProgram.ROOMY).placement(),
            kind,
            variant);
    try (var session = CudaSession.open(Lowering.lower(plan), Duration.ofSeconds(10))) {
      for (int rank = 0; rank < ranks; rank++) {
        for (var name : session.inputNames()) {
          SeededInputs.fill(session.input(rank, name), 1, rank, name);
        }
      }
      session.run();
      var profile = session.profile();
      var table = ProfileTable.print(plan, profile);
      // By the copy engines, the root alone sends.
      boolean one = kind == Kind.BROADCAST && variant == Variant.COPY_ENGINE;
      for (int rank = 0; rank < (one ? 1 : ranks); rank++) {
        for (int i = 0; i < COLLECTIVES; i++) {
          assertThat(kernels(profile.activities(), rank, BenchPrograms.label(i)))
              .as("rank %s of\n%s", rank, table)
              .singleElement()
              .satisfies(kernel -> assertRan(kernel, kind, variant));
        }
      }
    }
  }

  private static List<String> kernels(List<Activity> activities, int rank, String label) {
    return activities.stream()
        .filter(activity -> activity.rank() == rank && activity.label().equals(label))
        .map(Activity::kernel)
        .toList();
  }

  private static void assertRan(String kernel, Kind kind, Variant variant) {
    var name = NAMES.getOrDefault(kind, "");
    switch (variant) {
      case NCCL -> assertThat(kernel).startsWith("ncclDevKernel_" + name);
      case NCCL_SYMM ->
          // NCCL reduces and scatters by symmetric kernels only if the result is in a window, too.
          assertThat(kernel)
              .startsWith(kind == Kind.REDUCE_SCATTER ? "ncclDevKernel_" : "ncclSymk")
              .contains(name);
      // The work of copy engines appears without a kernel.
      case NCCL_CE -> assertThat(kernel).doesNotContain("ncclDevKernel", "ncclSymk", "generated");
      case COPY_ENGINE -> assertThat(kernel).contains("copy engine, ").doesNotContain("nccl");
      case ONE_SHOT, ONE_SHOT_PUSH, TWO_SHOT, TWO_SHOT_PUSH, PUSH ->
          assertThat(kernel).startsWith("generated, ").doesNotContain("nccl", "copy engine");
      case LOCAL, MULTIMEM, MULTIMEM_ONE_SHOT, CUSTOM ->
          throw new IllegalArgumentException(variant + " is not tested here");
    }
  }
}
