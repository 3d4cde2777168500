package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.bench.GraphBench;
import dev.symplan.runtime.bench.GraphReport;
import dev.symplan.runtime.bench.GraphTimes;
import dev.symplan.runtime.bench.PlannedMemory;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Figures that are measured of plans on GPUs are possible ones. */
@Tag("gpu")
class GraphBenchOnGpuTest {
  private static final int SIZE = 4096;

  private static GraphTimes measure(Plan plan) {
    var times =
        new GraphBench(
                new CudaBackend(),
                SessionOptions.DEFAULT,
                plan,
                Optional.empty(),
                Weights.NONE,
                5,
                (what, why) -> {
                  throw new AssertionError(what, why);
                })
            .measure(SIZE, 256L << 20);
    System.out.println(GraphReport.print(times, List.of()));
    assertThat(times.device().orElseThrow().median()).isPositive();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      assertThat(times.inUse().get(rank))
          .as("the arenas are there")
          .isGreaterThanOrEqualTo(PlannedMemory.of(plan, rank).total());
    }
    return times;
  }

  @Test
  void aLargeProductIsAtTheRoof() {
    Gpus.require(1);
    var times =
        measure(
            BenchPrograms.plan(BenchPrograms.product(DType.BF16, SIZE, 1), Target.defaultFor(1)));
    var product = times.roof().products().get(DType.BF16);
    var step = times.steps(0).getFirst();
    assertThat(times.steps(0)).hasSize(1);
    assertThat(step.work().orElseThrow().flops()).isEqualTo(2.0 * SIZE * SIZE * SIZE);
    // The same product, timed in another way.
    assertThat(times.roof().micros(step.work().get()).orElseThrow() / step.activity().micros())
        .isBetween(0.6, 1.4);
    assertThat(product).isNotNull();
    assertThat(times.communication(0).total()).isZero();
  }

  @Test
  void collectivesAreExposedBetweenProducts() {
    Gpus.require(2);
    var times = measure(BenchPrograms.plan(BenchPrograms.chain(4, 2), Target.H200_X4));
    for (int rank = 0; rank < 2; rank++) {
      assertThat(times.steps(rank)).hasSize(8);
      var found = times.communication(rank);
      assertThat(found.total()).isPositive();
      assertThat(found.exposed()).isBetween(0.99 * found.total(), 1.01 * found.total());
    }
  }
}
